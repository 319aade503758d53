"""Chooses between overlapping windows over texts, in a graph."""

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.data import packing


def best_windows(windows: graph_packing.Windows, row_starts: tf.Tensor) -> tf.Tensor:
    """Returns the window in which each piece has the most context.

    The TensorFlow version of `packing.most_context`.

    Args:
        windows: from `graph_packing.windows_over`.
        row_starts: int64 [B], the index of each text's first piece among the pieces of
            all texts.

    Returns:
        int64 [pieces of all texts], numbers of windows.
    """
    inside = tf.ragged.range(windows.length)  # The pieces of all windows.
    window = inside.value_rowids()
    length = tf.gather(windows.length, window)
    context = tf.minimum(inside.values, length - 1 - inside.values)
    score = tf.cast(context, tf.float64)
    score += packing.CONTEXT_LENGTH_WEIGHT * tf.cast(length, tf.float64)
    first = tf.gather(row_starts, windows.text) + windows.start
    piece = tf.gather(first, window) + inside.values
    total = tf.reduce_max(tf.concat([piece, [-1]], axis=0)) + 1
    best = tf.math.unsorted_segment_max(score, piece, total)
    is_best = score == tf.gather(best, piece)
    # Among equally good windows the first one wins.
    return tf.math.unsorted_segment_min(
        tf.boolean_mask(window, is_best), tf.boolean_mask(piece, is_best), total
    )
