import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.data import packing
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module


@pytest.fixture
def tokenizer():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s"]
    return full.FullTokenizer(vocabulary_module.Vocabulary(words))


def test_truncate_pair_ends_where_one_piece_at_a_time_does():
    for length_a in range(9):
        for length_b in range(9):
            for limit in range(18):
                a, b = list(range(length_a)), list(range(length_b))
                while len(a) + len(b) > limit:
                    (a if len(a) > len(b) else b).pop()
                got = packing.truncate_pair(range(length_a), range(length_b), limit)
                assert got == (a, b)


def test_pack_gives_padded_features(tokenizer):
    features = packing.pack(tokenizer, ["The cat sat", ""], max_seq_length=7)
    np.testing.assert_array_equal(
        features["input_ids"], [[2, 5, 6, 7, 3, 0, 0], [2, 3, 0, 0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(
        features["input_mask"], [[1, 1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0, 0]]
    )
    assert {array.dtype.name for array in features.values()} == {"int32"}


def test_pack_gives_pairs_their_segments(tokenizer):
    features = packing.pack(
        tokenizer, ["the cats"], texts_b=["sat sat sat"], max_seq_length=7
    )
    # Four pieces have room; B, the longer one, gives way.
    np.testing.assert_array_equal(features["input_ids"], [[2, 5, 6, 3, 7, 7, 3]])
    np.testing.assert_array_equal(features["segment_ids"], [[0, 0, 0, 0, 1, 1, 1]])


@pytest.mark.parametrize(
    "length_a, length_b, limit, kept",
    [
        (3, 3, 9, (3, 3)),  # Already fits.
        (5, 2, 6, (4, 2)),  # The longer segment gives way.
        (2, 5, 6, (2, 4)),
        (5, 5, 8, (4, 4)),
        (6, 5, 9, (5, 4)),  # The longer segment keeps the odd piece.
        (5, 6, 9, (4, 5)),
        (5, 5, 9, (4, 5)),  # Equal lengths: B keeps it.
    ],
)
def test_truncate_longer_cuts_as_hugging_face_does(length_a, length_b, limit, kept):
    tokens_a, tokens_b = packing.truncate_longer(
        ["a"] * length_a, ["b"] * length_b, limit
    )
    assert (len(tokens_a), len(tokens_b)) == kept


@pytest.mark.parametrize(
    "num_pieces, room, stride, expected",
    [
        (0, 5, 3, [(0, 0)]),
        (5, 5, 3, [(0, 5)]),  # Fits.
        (6, 5, 3, [(0, 5), (3, 6)]),
        (10, 5, 3, [(0, 5), (3, 8), (6, 10)]),
        (10, 5, 9, [(0, 5), (5, 10)]),  # A longer stride would skip pieces.
    ],
)
def test_windows_cover_the_text(num_pieces, room, stride, expected):
    assert packing.window_spans(num_pieces, room, stride) == expected


def test_a_piece_belongs_to_the_window_with_the_most_context():
    spans = packing.window_spans(23, 9, 4)
    chosen = packing.most_context(spans, np.arange(23))
    for piece in range(23):
        scores = [
            min(piece - start, stop - 1 - piece) + 0.01 * (stop - start)
            if start <= piece < stop
            else -1
            for start, stop in spans
        ]
        assert chosen[piece] == int(np.argmax(scores))


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
