"""Packs several sequences into one row: less padding, same losses.

The sequences of a row do not attend to each other (`sequence_ids`). Each has positions
from 0 (`position_ids`) and its own pooled vector (`cls_positions`). The losses
therefore add up to those of padded rows.

Rows are packed when records are written, not when they are read: batches stay a
function of seed and step, shapes stay static, and a run resumes as before.

Packing takes the longest sequence first and puts it into the fullest row with room,
2,048 sequences at a time. A row has at most as many masked positions as a single
sequence may have, so that the head computes no more than before.

Shape letters: B sequences, R rows, S positions of a row, K sequences of a row, M
masked positions of a row.
"""

from collections.abc import Mapping

import numpy as np

# The average length of a row's sequences is at least this; shorter ones are rare.
_MIN_MEAN_LENGTH = 16


def sequences_per_row(max_seq_length: int) -> int:
    """Returns K, the maximum number of sequences in a row of this length."""
    return max(2, max_seq_length // _MIN_MEAN_LENGTH)


def packed(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns rows that hold one or more sequences each.

    Args:
        columns: [B, length] of `schema.pretraining`, masked or not, in random order.

    Returns:
        Columns [R, length] with R at most B: the given ones, with the sequences side by
        side, `masked_lm_positions` counted from the start of the row and one label per
        sequence; `sequence_ids` [R, S], 1 for the first sequence and 0 for padding;
        `position_ids` [R, S]; `cls_positions` [R, K], 0 if unused.
    """
    is_real = columns["input_mask"] > 0
    length = is_real.shape[1]
    most = sequences_per_row(length)
    num_predictions = np.zeros(len(is_real), np.int64)
    if "masked_lm_weights" in columns:
        num_predictions = (columns["masked_lm_weights"] > 0).sum(axis=1)
    layout = _Layout(
        is_real.sum(axis=1),
        num_predictions,
        limits=(length, most, columns.get("masked_lm_ids", is_real).shape[1]),
    )
    result = _sequence_columns(columns, layout, is_real)
    cls_positions = np.zeros((layout.num_rows, most), np.int32)
    cls_positions[layout.row, layout.number] = layout.offset
    result["cls_positions"] = cls_positions
    if "masked_lm_weights" in columns:
        result |= _masked_columns(columns, layout)
    if "next_sentence_labels" in columns:
        labels = np.zeros((layout.num_rows, most), np.uint8)
        labels[layout.row, layout.number] = columns["next_sentence_labels"][:, 0]
        result["next_sentence_labels"] = labels
    return result


class _Layout:
    """Where each of B sequences goes: its row, its first position and its number there.

    The longest sequences come first, each into the fullest row with enough room.

    Attributes:
        num_rows: R.
        row: int64 [B], row of each sequence.
        number: int64 [B], index of each sequence in its row.
        offset: int64 [B], first position of each sequence in its row.
        first_prediction: int64 [B], first masked position of each sequence in its row.
    """

    def __init__(self, lengths, num_predictions, limits):
        most_pieces, most_sequences, most_predictions = limits
        # Rows by number of free positions. Bit n of `is_there`: some row has n of them.
        with_room: list[list[int]] = [[] for _ in range(most_pieces + 1)]
        is_there = 0
        rows: list[list[int]] = []  # The sequences of each row.
        used: list[int] = []  # The number of masked positions of each row.
        for index in np.argsort(-lengths, kind="stable").tolist():
            size, wanted = int(lengths[index]), int(num_predictions[index])
            row, left = None, most_pieces
            candidates = is_there >> size
            while candidates:
                left = size + (candidates & -candidates).bit_length() - 1
                row = with_room[left][-1]
                if used[row] + wanted <= most_predictions:
                    break
                row, left = None, most_pieces
                candidates &= candidates - 1
            if row is None:
                row = len(rows)
                rows.append([])
                used.append(0)
            else:
                with_room[left].pop()
                is_there &= ~(0 if with_room[left] else 1 << left)
            rows[row].append(index)
            used[row] += wanted
            if len(rows[row]) < most_sequences:
                with_room[left - size].append(row)
                is_there |= 1 << (left - size)
        # Order rows by their first sequence. Packing has sorted them by length.
        rows.sort(key=min)
        sizes = np.array([len(row) for row in rows])
        order = np.concatenate([np.array(row, np.int64) for row in rows])
        self.num_rows = len(rows)
        self.row, self.number = np.empty((2, len(order)), np.int64)
        self.row[order] = np.repeat(np.arange(len(rows)), sizes)
        self.number[order] = _sums_before(np.ones(len(order), np.int64), sizes)
        self.offset, self.first_prediction = np.empty((2, len(order)), np.int64)
        self.offset[order] = _sums_before(lengths[order], sizes)
        self.first_prediction[order] = _sums_before(num_predictions[order], sizes)


def _sums_before(values, sizes):
    """Returns the sum of the values before each value in its group."""
    sums = np.cumsum(values) - values
    first = np.cumsum(sizes) - sizes
    return sums - np.repeat(sums[first], sizes)


def _sequence_columns(columns, layout, is_real):
    length = is_real.shape[1]
    position = np.arange(length)
    to = ((layout.row * length + layout.offset)[:, None] + position)[is_real]
    values = {
        "input_ids": columns["input_ids"],
        "input_mask": is_real,
        "segment_ids": columns["segment_ids"],
        "sequence_ids": np.broadcast_to(layout.number[:, None] + 1, is_real.shape),
        "position_ids": np.broadcast_to(position, is_real.shape),
    }
    if "word_starts" in columns:
        values["word_starts"] = columns["word_starts"]
    result = {}
    for name, value in values.items():
        flat = np.zeros(layout.num_rows * length, np.int32)
        flat[to] = value[is_real]
        result[name] = flat.reshape(-1, length)
    return result


def _masked_columns(columns, layout):
    weights = columns["masked_lm_weights"]
    rows, ranks = np.nonzero(weights)
    to = (layout.row[rows], layout.first_prediction[rows] + ranks)
    shape = (layout.num_rows, weights.shape[1])
    positions, ids = np.zeros((2, *shape), np.int32)
    positions[to] = columns["masked_lm_positions"][rows, ranks] + layout.offset[rows]
    ids[to] = columns["masked_lm_ids"][rows, ranks]
    packed_weights = np.zeros(shape, np.float32)
    packed_weights[to] = weights[rows, ranks]
    return {
        "masked_lm_positions": positions,
        "masked_lm_ids": ids,
        "masked_lm_weights": packed_weights,
    }
