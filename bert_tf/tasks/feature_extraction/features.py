"""Cuts a text's pieces into rows for the encoder: one row, or several windows."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.data import packing

# 1 for the pieces that count in the vector of a text.
COUNTS = "counts"
COLUMNS = (*packing.ENCODER_COLUMNS, COUNTS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Window:
    """One row: [CLS] A [SEP], or [CLS] A [SEP] B [SEP], or a window of such a text."""

    ids: np.ndarray  # int32 [S].
    segment_ids: np.ndarray  # int32 [S].
    # bool [S]: whether the piece's vector comes from this window. Every piece of a text
    # counts in exactly one window.
    counts: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lengths:
    """Length of the rows, and distance between the starts of windows."""

    max_seq_length: int
    doc_stride: int | None  # None: longer texts are truncated.


def windows(
    ids_a: Sequence[int],
    ids_b: Sequence[int] | None,
    lengths: Lengths,
    *,
    cls: int,
    sep: int,
) -> list[Window]:
    """Returns the rows of one text.

    Args:
        ids_a: pieces of the first text.
        ids_b: pieces of the second text, or None.
        lengths: with a doc_stride, a single text or the second of two is divided into
            windows; the first of two is repeated in every window.
        cls: id of [CLS].
        sep: id of [SEP].

    Raises:
        ValueError: the first of two texts leaves no room for the second.
    """
    if lengths.doc_stride is None:
        row = packing.pack_pair(
            ids_a, ids_b, max_seq_length=lengths.max_seq_length, cls=cls, sep=sep
        )
        counts = np.ones(len(row.pieces), bool)
        return [_window(row.pieces, row.segment_ids, counts)]
    before = [cls] if ids_b is None else [cls, *ids_a, sep]
    divided = ids_a if ids_b is None else ids_b
    room = lengths.max_seq_length - len(before) - 1
    if room < 1:
        raise ValueError(
            f"the first text has {len(ids_a)} pieces, which leaves no room for the "
            f"second in max_seq_length {lengths.max_seq_length}; raise it, or shorten "
            "the text."
        )
    segment = 0 if ids_b is None else 1
    found = spans(len(divided), room, min(lengths.doc_stride, room))
    owner = best_spans(found, len(divided))
    rows = []
    for number, (start, stop) in enumerate(found):
        is_first, is_last = number == 0, number == len(found) - 1
        pieces = [*before, *divided[start:stop], sep]
        segment_ids = [0] * len(before) + [segment] * (stop - start + 1)
        counts = np.concatenate(
            [
                np.full(len(before), is_first),
                owner[start:stop] == number,
                np.full(1, is_last),
            ]
        )
        rows.append(_window(pieces, segment_ids, counts))
    return rows


def spans(num_pieces: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Returns where the windows of a text start and end.

    Args:
        num_pieces: number of pieces in the text.
        room: maximum number of pieces in a window.
        stride: distance between the starts of two windows.

    Source: doc_spans of run_squad.py, 2018.
    """
    found: list[tuple[int, int]] = []
    start = 0
    while not found or found[-1][1] < num_pieces:
        found.append((start, min(start + room, num_pieces)))
        start += stride
    return found


def best_spans(found: Sequence[tuple[int, int]], num_pieces: int) -> np.ndarray:
    """Returns the window in which each piece has the most context, int [num_pieces].

    A piece's context is the smaller of its contexts to the left and to the right. Among
    equals the longer window wins, then the first one.

    Args:
        found: starts and ends of the windows, in order.
        num_pieces: number of pieces in the text.

    Source: _check_is_max_context of run_squad.py, 2018.
    """
    best = np.full(num_pieces, -1.0)
    owner = np.zeros(num_pieces, np.int64)
    for number, (start, stop) in enumerate(found):
        left = np.arange(stop - start)
        score = np.minimum(left, left[::-1])
        score = score + packing.CONTEXT_LENGTH_WEIGHT * (stop - start)
        better = score > best[start:stop]
        owner[start:stop][better] = number
        best[start:stop][better] = score[better]
    return owner


def padded(rows: Sequence[Window]) -> dict[str, np.ndarray]:
    """Returns the encoder's features for some rows, padded to the longest one.

    Returns:
        `input_ids`, `input_mask`, `segment_ids` and `counts`, int32 [B, S]; `counts`
        is 1 for the pieces that count.
    """
    length = max(len(row.ids) for row in rows)
    shape = (len(rows), length)
    features = {name: np.zeros(shape, np.int32) for name in COLUMNS}
    for index, row in enumerate(rows):
        size = len(row.ids)
        features["input_ids"][index, :size] = row.ids
        features["input_mask"][index, :size] = 1
        features["segment_ids"][index, :size] = row.segment_ids
        features[COUNTS][index, :size] = row.counts
    return features


def _window(pieces, segment_ids, counts):
    return Window(
        ids=np.array(pieces, np.int32),
        segment_ids=np.array(segment_ids, np.int32),
        counts=counts,
    )
