import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.data import packing


def ragged(lengths, first):
    values = [first + index for length in lengths for index in range(length)]
    return tf.RaggedTensor.from_row_lengths(
        tf.constant(values, tf.int32), tf.constant(lengths, tf.int64)
    )


@pytest.mark.parametrize("max_seq_length", [3, 4, 5, 8, 9, 64])
@pytest.mark.parametrize("is_pair", [False, True])
def test_texts_of_all_lengths_are_cut_as_packing_cuts_them(max_seq_length, is_pair):
    lengths = [(a, b) for a in range(8) for b in (range(8) if is_pair else [0])]
    lengths_a, lengths_b = zip(*lengths, strict=True)
    packed = graph_packing.pack_ragged(
        ragged(lengths_a, 100),
        ragged(lengths_b, 200) if is_pair else None,
        max_seq_length=max_seq_length,
        cls_id=1,
        sep_id=2,
    )
    expected = [
        packing.pack_pair(
            range(100, 100 + a),
            range(200, 200 + b) if is_pair else None,
            max_seq_length=max_seq_length,
            cls=1,
            sep=2,
        )
        for a, b in lengths
    ]
    length = packed["input_ids"].shape[1]
    assert length == min(max_seq_length, 7 + 7 + 3 if is_pair else 7 + 2)
    for name, column in packing.padded_features(expected, length).items():
        np.testing.assert_array_equal(packed[name], column, err_msg=name)
