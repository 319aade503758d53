"""Several sequences in a row: less padding, and nothing else changes.

Sequences of a row do not see one another (`sequence_ids`), each has positions from 0
(`position_ids`) and a pooled vector of its own (`cls_positions`). So sums of losses
are those of padded rows.
"""

from collections.abc import Mapping

import numpy as np

# Sequences are 16 pieces long at least, on average over a row; shorter ones are rare.
_FEWEST_PIECES = 16


def sequences_per_row(max_seq_length: int) -> int:
    """Returns the most sequences that share a row of `max_seq_length` places, K."""
    return max(2, max_seq_length // _FEWEST_PIECES)


def packed(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns rows that hold one or several of the sequences each.

    No row has more masked positions than the columns have places for, M.

    Args:
        columns: [B, length] of `schema.pretraining`, masked or not, in random order.

    Returns:
        Columns [R, length] with R at most B: the same ones, with sequences from left
        to right, `masked_lm_positions` counted from the start of the row and a label
        for each of K sequences; `sequence_ids` [R, S], 1 for the first sequence and 0
        for padding; `position_ids` [R, S]; `cls_positions` [R, K], unused: 0.
    """
    is_real = columns["input_mask"] > 0
    length = is_real.shape[1]
    most = sequences_per_row(length)
    num_predictions = np.zeros(len(is_real), np.int64)
    if "masked_lm_weights" in columns:
        num_predictions = (columns["masked_lm_weights"] > 0).sum(axis=1)
    places = _Places(
        is_real.sum(axis=1),
        num_predictions,
        limits=(length, most, columns.get("masked_lm_ids", is_real).shape[1]),
    )
    result = _sequence_columns(columns, places, is_real)
    cls_positions = np.zeros((places.num_rows, most), np.int32)
    cls_positions[places.row, places.number] = places.offset
    result["cls_positions"] = cls_positions
    if "masked_lm_weights" in columns:
        result |= _masked_columns(columns, places)
    if "next_sentence_labels" in columns:
        labels = np.zeros((places.num_rows, most), np.uint8)
        labels[places.row, places.number] = columns["next_sentence_labels"][:, 0]
        result["next_sentence_labels"] = labels
    return result


class _Places:
    """Where each of B sequences goes: row, place in the row, number in the row.

    The longest sequences come first, each into the fullest row that has room for it.
    """

    def __init__(self, lengths, num_predictions, limits):
        most_pieces, most_sequences, most_predictions = limits
        with_room = [[] for _ in range(most_pieces + 1)]  # Rows by places left.
        is_there = 0  # Bit n: there are rows with n places left.
        rows, used = [], []  # Of each row: its sequences; masked positions.
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
        # Not by length: in the order in which a row's first sequence came.
        rows.sort(key=min)
        sizes = np.array([len(row) for row in rows])
        order = np.concatenate([np.array(row, np.int64) for row in rows])
        self.num_rows = len(rows)
        self.row, self.number = np.empty((2, len(order)), np.int64)
        self.row[order] = np.repeat(np.arange(len(rows)), sizes)
        self.number[order] = _before(np.ones(len(order), np.int64), sizes)
        self.offset, self.first_prediction = np.empty((2, len(order)), np.int64)
        self.offset[order] = _before(lengths[order], sizes)
        self.first_prediction[order] = _before(num_predictions[order], sizes)


def _before(values, sizes):
    """Returns the sum of what stands before each value in its group."""
    sums = np.cumsum(values) - values
    first = np.cumsum(sizes) - sizes
    return sums - np.repeat(sums[first], sizes)


def _sequence_columns(columns, places, is_real):
    length = is_real.shape[1]
    place = np.arange(length)
    to = ((places.row * length + places.offset)[:, None] + place)[is_real]
    values = {
        "input_ids": columns["input_ids"],
        "input_mask": is_real,
        "segment_ids": columns["segment_ids"],
        "sequence_ids": np.broadcast_to(places.number[:, None] + 1, is_real.shape),
        "position_ids": np.broadcast_to(place, is_real.shape),
    }
    if "word_starts" in columns:
        values["word_starts"] = columns["word_starts"]
    result = {}
    for name, value in values.items():
        flat = np.zeros(places.num_rows * length, np.int32)
        flat[to] = value[is_real]
        result[name] = flat.reshape(-1, length)
    return result


def _masked_columns(columns, places):
    weights = columns["masked_lm_weights"]
    rows, ranks = np.nonzero(weights)
    to = (places.row[rows], places.first_prediction[rows] + ranks)
    shape = (places.num_rows, weights.shape[1])
    positions, ids = np.zeros((2, *shape), np.int32)
    positions[to] = columns["masked_lm_positions"][rows, ranks] + places.offset[rows]
    ids[to] = columns["masked_lm_ids"][rows, ranks]
    packed_weights = np.zeros(shape, np.float32)
    packed_weights[to] = weights[rows, ranks]
    return {
        "masked_lm_positions": positions,
        "masked_lm_ids": ids,
        "masked_lm_weights": packed_weights,
    }
