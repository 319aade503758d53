"""Windows over long texts, and the mean of their logits."""

import numpy as np
import pytest

from bert_tf.tasks.classification import features as features_module
from bert_tf.tokenization import full


@pytest.mark.parametrize(
    "ids_a, ids_b, length, stride, expected",
    [
        # It fits: one row.
        ([1, 2, 3], None, 5, 2, [([1, 2, 3], None)]),
        ([1, 2, 3, 4, 5], None, 5, 2, [([1, 2, 3], None), ([3, 4, 5], None)]),
        # The last window may be shorter; no window without new pieces.
        ([1, 2, 3, 4], None, 5, 2, [([1, 2, 3], None), ([3, 4], None)]),
        ([1, 2, 3, 4], None, 5, 3, [([1, 2, 3], None), ([4], None)]),
        # In a pair, the longer text slides; the other one is in every row.
        ([1, 2, 3, 4], [9], 6, 1, [([1, 2], [9]), ([2, 3], [9]), ([3, 4], [9])]),
        ([9], [1, 2, 3], 6, 2, [([9], [1, 2]), ([9], [3])]),
        # It has at most half of the row, and the stride at most the rest.
        ([9, 8, 7], [1, 2, 3], 7, 9, [([9, 8], [1, 2]), ([9, 8], [3])]),
        ([], None, 5, 2, [([], None)]),  # An empty text has a row too.
    ],
)
def test_windows_hold_every_piece(ids_a, ids_b, length, stride, expected):
    assert features_module.windows_of(ids_a, ids_b, length, stride) == expected


def test_rows_are_mapped_to_their_texts(golden):
    tokenizer = full.FullTokenizer(str(golden / "vocab.txt"))
    packed, numbers = features_module.pack(
        tokenizer, ["a b a b a", "a"], max_seq_length=5, doc_stride=2
    )
    assert numbers.tolist() == [0, 0, 1]
    assert packed["input_mask"].sum(axis=1).tolist() == [5, 5, 3]
    cut, numbers = features_module.pack(tokenizer, ["a b a b a", "a"], max_seq_length=5)
    assert numbers.tolist() == [0, 1]
    np.testing.assert_array_equal(cut["input_ids"], packed["input_ids"][[0, 2]])


def test_logits_are_averaged_over_the_windows_of_a_text():
    logits = np.array([[1, 0], [3, 2], [5, 5]], np.float32)
    mean = features_module.mean_over_windows(logits, np.array([0, 0, 1]), 2)
    assert mean.tolist() == [[2, 1], [5, 5]]
    assert mean.dtype == np.float32
