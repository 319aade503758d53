"""Windows of long texts: every piece counts once, where its context is largest."""

import numpy as np
import pytest

from bert_tf.tasks.feature_extraction import features as features_module

CLS, SEP = 101, 102


def windows(ids_a, ids_b=None, *, length=8, stride=None):
    lengths = features_module.Lengths(max_seq_length=length, doc_stride=stride)
    return features_module.windows(ids_a, ids_b, lengths, cls=CLS, sep=SEP)


def counted(rows):
    return [int(i) for row in rows for i in row.ids[row.counts]]


def test_without_a_stride_a_long_text_is_cut():
    [row] = windows(range(10))
    assert row.ids.tolist() == [CLS, 0, 1, 2, 3, 4, 5, SEP]
    assert row.counts.all()


def test_a_text_that_fits_is_one_window_with_a_stride_too():
    [row] = windows([7, 8], [9], stride=2)
    assert row.ids.tolist() == [CLS, 7, 8, SEP, 9, SEP]
    assert row.segment_ids.tolist() == [0, 0, 0, 0, 1, 1]
    assert row.counts.all()


def test_a_long_text_is_divided_and_every_piece_counts_once():
    rows = windows(range(12), stride=3)
    assert [row.ids[1:-1].tolist() for row in rows] == [
        [0, 1, 2, 3, 4, 5],
        [3, 4, 5, 6, 7, 8],
        [6, 7, 8, 9, 10, 11],
    ]
    assert [row.ids[row.counts].tolist() for row in rows] == [
        # Piece 4 has one neighbor to its right there, and one to its left in the
        # second window: of equals the first.
        [CLS, 0, 1, 2, 3, 4],
        [5, 6, 7],
        [8, 9, 10, 11, SEP],
    ]


def test_the_first_of_two_texts_is_in_every_window_and_counts_in_one():
    rows = windows([1, 2], range(20, 30), stride=2, length=9)
    assert all(row.ids[:4].tolist() == [CLS, 1, 2, SEP] for row in rows)
    assert counted(rows) == [CLS, 1, 2, SEP, *range(20, 30), SEP]
    assert rows[1].segment_ids.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]


def test_a_first_text_that_leaves_no_room_is_refused():
    with pytest.raises(ValueError, match="has 6 pieces, which leaves no room"):
        windows(range(6), [1], stride=2)


@pytest.mark.parametrize("num_pieces", [0, 1, 6, 7, 40, 41])
@pytest.mark.parametrize("stride", [1, 4, 6])
def test_whatever_the_length_all_pieces_are_there_in_order(num_pieces, stride):
    rows = windows(range(num_pieces), stride=stride)
    assert counted(rows) == [CLS, *range(num_pieces), SEP]
    assert all(len(row.ids) <= 8 for row in rows)


def test_the_owner_of_a_piece_is_the_window_with_the_most_context():
    spans = features_module.spans(23, 9, 4)
    owner = features_module.best_spans(spans, 23)
    for piece in range(23):
        scores = [
            min(piece - start, stop - 1 - piece) + 0.01 * (stop - start)
            if start <= piece < stop
            else -1
            for start, stop in spans
        ]
        assert owner[piece] == int(np.argmax(scores))


def test_rows_are_padded_to_the_longest():
    rows = [*windows([5, 6]), *windows([7])]
    columns = features_module.padded(rows)
    counts = columns.pop(features_module.COUNTS)
    assert columns["input_ids"].tolist() == [[CLS, 5, 6, SEP], [CLS, 7, SEP, 0]]
    assert columns["input_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert counts.tolist() == columns["input_mask"].tolist()
    assert {column.dtype for column in columns.values()} == {np.dtype("int32")}
