"""The default sampler: text to records, thousands of sequences at once.

It draws from the distributions of the release, but vectorized in NumPy: tokenize the
shard (`tokenized_text`), draw all pairs (`pairs`), shuffle them, and then lay out and
mask (`rows`) and optionally pack (`packed`) a block of rows at a time.
`release_sampling` is the readable counterpart.

Shape letters: B sequences, R rows, S positions of a row, K sequences of a row, M
masked positions of a row.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import numpy_arrays
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import rows as rows_module
from bert_tf.pretraining_data import tokenized_text
from bert_tf.tokenization import vocabulary as vocabulary_module

# Large enough to keep NumPy's overhead small, small enough for the processor's cache.
_ROWS_AT_A_TIME = 2048
# Minimum average length of the sequences of a packed row; shorter ones are rare.
_MIN_MEAN_LENGTH = 16


class VectorizedSampler:
    """Creates records with the distributions of the 2018 script."""

    def __init__(
        self,
        options: pretraining_data_options.CreatePretrainingDataOptions,
        vocabulary: vocabulary_module.Vocabulary,
    ):
        self._options = options
        self._vocabulary = vocabulary
        segment = None
        if options.whole_word_segmenter is not None:
            segment = tokenized_text.load_jieba()
        self._table = tokenized_text.WordTable(
            vocabulary, options.do_lower_case, segment
        )
        self._pairs = pairs_module.Sampler(numpy_arrays, options)
        self._rows = rows_module.RowMaker(numpy_arrays, vocabulary, options)

    def columns(
        self,
        shard: data_corpus.Shard,
        shard_index: int,
        counts: counts_module.Counts,
        on_progress: Callable[[float], None],
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yields the shard's records in random order.

        Args:
            shard: the text.
            shard_index: index of the shard, which determines the draws with the seed.
            counts: the counts of the shard's text are added to it.
            on_progress: called with the share of the shard that is finished.

        Yields:
            Columns [B, length] of `schema.pretraining`.

        Raises:
            OSError: the text cannot be read.
            ValueError: the text is not UTF-8, or has one document although sentence
                pairs need two.
        """
        text = self._text(shard, on_progress)
        path = shard.spans[0].path
        counts.add_text(text, self._vocabulary.unk_id, self._options, path)
        if not len(text.ids):
            return
        pairs, rows_of = self._sample(text, shard_index)
        num_rows = len(pairs.start_a)
        for done in range(0, num_rows, _ROWS_AT_A_TIME):
            rows = slice(done, done + _ROWS_AT_A_TIME)
            yield rows_of(pairs_module.Pairs(*(column[rows] for column in pairs)), done)
            on_progress(0.5 + 0.5 * done / num_rows)

    def _text(self, shard, on_progress):
        return tokenized_text.tokenize_documents(
            data_corpus.read_shard(shard),
            self._table,
            on_progress=lambda n: on_progress(n / (2 * shard.num_bytes)),
        )

    def _sample(self, text, shard_index):
        """Returns the pairs, and a function from a block of them to its columns."""
        draws = numpy_arrays.Draws(self._options.random_seed, shard_index)

        def rows_of(block, first_row):
            columns = self._rows.rows(text, block, draws)
            return packed(columns) if self._options.packed_rows else columns

        return self._pairs.sample(text, draws, self._options.dupe_factor), rows_of


def sequences_per_row(max_seq_length: int) -> int:
    """Returns K, the maximum number of sequences in a row of this length."""
    return max(2, max_seq_length // _MIN_MEAN_LENGTH)


def packed(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns rows that hold one or more sequences each: less padding, same losses.

    The sequences of a row do not attend to each other (`sequence_ids`). Each has
    positions from 0 (`position_ids`) and its own pooled vector (`cls_positions`). The
    losses therefore add up to those of padded rows.

    Rows are packed when records are written, not when they are read: batches stay a
    function of seed and step, shapes stay static, and a run resumes as before.

    Packing takes the longest sequence first and puts it into the fullest row with room,
    2,048 sequences at a time. A row has at most as many masked positions as a single
    sequence may have, so that the head computes no more than before.

    Args:
        columns: [B, length] of `schema.pretraining`, in random order.

    Returns:
        Columns [R, length] with R at most B: the given ones, with the sequences side by
        side, `masked_lm_positions` counted from the start of the row and one label per
        sequence; `sequence_ids` [R, S], 1 for the first sequence and 0 for padding;
        `position_ids` [R, S]; `cls_positions` [R, K], 0 if unused.
    """
    is_real = columns["input_mask"] > 0
    length = is_real.shape[1]
    most = sequences_per_row(length)
    layout = _layout(
        is_real.sum(axis=1),
        (columns["masked_lm_weights"] > 0).sum(axis=1),
        limits=(length, most, columns["masked_lm_ids"].shape[1]),
    )
    num_rows = layout.row.max() + 1
    position = np.arange(length)
    to = ((layout.row * length + layout.offset)[:, None] + position)[is_real]
    names = ("input_ids", "input_mask", "segment_ids")
    values = {name: columns[name] for name in names} | {
        "sequence_ids": np.broadcast_to(layout.number[:, None] + 1, is_real.shape),
        "position_ids": np.broadcast_to(position, is_real.shape),
    }
    result = {name: np.zeros((num_rows, length), np.int32) for name in values}
    for name, value in values.items():
        np.put(result[name], to, value[is_real])
    result["cls_positions"] = np.zeros((num_rows, most), np.int32)
    result["cls_positions"][layout.row, layout.number] = layout.offset
    result |= _masked_columns(columns, layout, num_rows)
    if "next_sentence_labels" in columns:
        labels = np.zeros((num_rows, most), np.uint8)
        labels[layout.row, layout.number] = columns["next_sentence_labels"][:, 0]
        result["next_sentence_labels"] = labels
    return result


class _Layout(NamedTuple):
    """Where each of B sequences goes: int64 [B]."""

    row: np.ndarray
    number: np.ndarray  # Index of the sequence in its row.
    offset: np.ndarray  # Its first position in the row.
    first_prediction: np.ndarray  # Its first masked position in the row.


def _layout(lengths, num_predictions, limits):
    """Puts the longest sequences first, each into the fullest row with enough room."""
    most_pieces, most_sequences, most_predictions = limits
    # Rows by number of free positions. Bit n of `is_there`: some row has n of them.
    with_room: list[list[int]] = [[] for _ in range(most_pieces + 1)]
    is_there = 0
    # The number of sequences and of masked positions of each row.
    counts: list[int] = []
    used: list[int] = []
    places = []
    order = np.argsort(-lengths, kind="stable")
    for size, wanted in zip(
        lengths[order].tolist(), num_predictions[order].tolist(), strict=True
    ):
        row, left = len(counts), most_pieces
        candidates = is_there >> size
        while candidates:
            room = size + (candidates & -candidates).bit_length() - 1
            if used[with_room[room][-1]] + wanted <= most_predictions:
                left = room
                row = with_room[room].pop()
                is_there &= ~(0 if with_room[room] else 1 << room)
                break
            candidates &= candidates - 1
        else:
            counts.append(0)
            used.append(0)
        places.append((row, counts[row], most_pieces - left, used[row]))
        counts[row] += 1
        used[row] += wanted
        if counts[row] < most_sequences:
            with_room[left - size].append(row)
            is_there |= 1 << (left - size)
    layout = np.empty((len(order), 4), np.int64)
    layout[order] = places
    # Order rows by their first sequence. Packing has sorted them by length.
    first = np.unique(layout[:, 0], return_index=True)[1]
    layout[:, 0] = np.argsort(np.argsort(first))[layout[:, 0]]
    return _Layout(*layout.T)


def _masked_columns(columns, layout, num_rows):
    weights = columns["masked_lm_weights"]
    rows, ranks = np.nonzero(weights)
    to = (layout.row[rows], layout.first_prediction[rows] + ranks)
    shape = (num_rows, weights.shape[1])
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
