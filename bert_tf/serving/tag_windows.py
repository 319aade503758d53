"""Sliding windows over the words of texts, in a graph.

The TensorFlow version of `token_classification.features`, which explains the steps.

Shape letters: B texts, P pieces, N windows, W words.
"""

import dataclasses

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.data import packing
from bert_tf.tasks.token_classification import features as features_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows over some texts, in order."""

    piece_ids: tf.RaggedTensor  # int32 [N, pieces]
    row: tf.Tensor  # int64 [W]: the window from which each word takes its tag.
    position: tf.Tensor  # int64 [W]: the word's first piece there, without [CLS].


def windows_of(
    pieces: tf.RaggedTensor, windowing: features_module.Windowing
) -> Windows:
    """Returns the windows, and from which of them each word takes its tag.

    Args:
        pieces: int32 [B, words, pieces]; a word has at least one piece.
        windowing: capacity and stride.
    """
    ids = pieces.merge_dims(1, 2)  # [B, P]
    lengths = ids.row_lengths()
    capacity = tf.constant(windowing.capacity, tf.int64)
    stride = tf.constant(windowing.doc_stride, tf.int64)
    counts = 1 - (-tf.maximum(lengths - capacity, 0) // stride)  # [B]
    text = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)  # [N]
    start = tf.ragged.range(counts).values * stride
    end = tf.minimum(start + capacity, tf.gather(lengths, text))
    begin = tf.gather(ids.row_starts(), text)
    indices = tf.ragged.range(begin + start, begin + end)
    row = _best_windows(pieces, start, end, counts, windowing)
    return Windows(
        piece_ids=indices.with_values(tf.gather(ids.values, indices.values)),
        row=row,
        position=pieces.values.row_starts() - tf.gather(begin + start, row),
    )


def features(windows: Windows, *, cls_id: int, sep_id: int) -> dict[str, tf.Tensor]:
    """Returns `input_ids`, `input_mask`, `segment_ids` of windows: int32 [N, S]."""
    return graph_packing.framed(windows.piece_ids, cls_id=cls_id, sep_id=sep_id)


def _best_windows(pieces, start, end, counts, windowing):
    """Returns for each word the window with the most context on its shorter side, [W].

    Args:
        pieces: the pieces by text and word.
        start, end: int64 [N], each window's first piece in its text and the one after
            its last.
        counts: int64 [B], windows of each text.
        windowing: capacity and stride.
    """
    capacity = tf.constant(windowing.capacity, tf.int64)
    stride = tf.constant(windowing.doc_stride, tf.int64)
    text = pieces.value_rowids()  # [W]
    words = pieces.values.row_starts()  # [W], the first piece of each word.
    first = words - tf.gather(pieces.merge_dims(1, 2).row_starts(), text)
    # Windows start at the multiples of the stride, so those with the word are a range.
    earliest = tf.maximum(-(-(first - capacity + 1) // stride), 0)
    latest = tf.minimum(first // stride, tf.gather(counts, text) - 1)
    first_window = tf.gather(tf.cumsum(counts, exclusive=True), text)
    window = tf.ragged.range(first_window + earliest, first_window + latest + 1)
    word = window.value_rowids()  # [pairs of a word and a window]
    window = window.values
    before = tf.gather(first, word) - tf.gather(start, window)
    after = tf.gather(end, window) - 1 - tf.gather(first, word)
    length = tf.cast(tf.gather(end - start, window), tf.float64)
    score = tf.cast(tf.minimum(before, after), tf.float64)
    score += packing.CONTEXT_LENGTH_WEIGHT * length
    best = tf.math.segment_max(score, word)
    is_best = score == tf.gather(best, word)
    return tf.math.segment_min(
        tf.boolean_mask(window, is_best), tf.boolean_mask(word, is_best)
    )
