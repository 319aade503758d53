import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.data import packing
from bert_tf.tokenization import in_graph

TEXTS = ["", "a", "the rain", "the rain " * 20, "crème brûlée, 中文!", "\x00 \ufffd"]


@pytest.fixture(scope="module")
def tokenizer(golden):
    return in_graph.InGraphTokenizer(str(golden / "vocab.txt"))


def ragged(lengths, first):
    values = [first + index for length in lengths for index in range(length)]
    return tf.RaggedTensor.from_row_lengths(
        tf.constant(values, tf.int32), tf.constant(lengths, tf.int64)
    )


@pytest.mark.parametrize("max_seq_length", [3, 4, 5, 8, 9, 64])
def test_pairs_of_all_lengths_are_cut_as_packing_cuts_them(max_seq_length):
    lengths = [(a, b) for a in range(8) for b in range(8)]
    packed = graph_packing.pack_ragged(
        ragged([a for a, _ in lengths], 100),
        ragged([b for _, b in lengths], 200),
        max_seq_length=max_seq_length,
        cls_id=1,
        sep_id=2,
    )
    expected = [
        packing.pack_pair(
            list(range(100, 100 + a)),
            list(range(200, 200 + b)),
            max_seq_length=max_seq_length,
            cls=1,
            sep=2,
        )
        for a, b in lengths
    ]
    length = packed["input_ids"].shape[1]
    assert length == min(max_seq_length, 7 + 7 + 3)
    for name, column in packing.padded_features(expected, length).items():
        np.testing.assert_array_equal(packed[name], column, err_msg=name)


@pytest.mark.parametrize("texts_b", [None, list(reversed(TEXTS))])
def test_texts_are_packed_as_packing_packs_them(tokenizer, texts_b):
    expected = packing.pack(tokenizer, TEXTS, texts_b=texts_b, max_seq_length=12)
    packed = graph_packing.pack_ragged(
        tokenizer.tokenize(TEXTS),
        None if texts_b is None else tokenizer.tokenize(texts_b),
        max_seq_length=12,
        cls_id=tokenizer.vocabulary.cls_id,
        sep_id=tokenizer.vocabulary.sep_id,
    )
    for name, column in expected.items():
        np.testing.assert_array_equal(packed[name], column, err_msg=name)
