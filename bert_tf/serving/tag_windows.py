"""Sliding windows over the words of texts, in a graph.

It does what `token_classification.features` does in Python and explains there.

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
    row = _best_windows(pieces, ids, begin + start, begin + end, text)
    return Windows(
        piece_ids=indices.with_values(tf.gather(ids.values, indices.values)),
        row=row,
        position=pieces.values.row_starts() - tf.gather(begin + start, row),
    )


def features(windows: Windows, *, cls_id: int, sep_id: int) -> dict[str, tf.Tensor]:
    """Returns `input_ids`, `input_mask`, `segment_ids` of windows: int32 [N, S]."""
    return graph_packing.framed(windows.piece_ids, cls_id=cls_id, sep_id=sep_id)


def _best_windows(pieces, ids, start, end, text):
    """Returns for each word the window with most context on its poorer side, [W].

    Args:
        pieces, ids: the pieces by word, and by text.
        start, end: int64 [N], each window's first piece and the one after its last,
            counted among the pieces of all texts.
        text: int64 [N], the text of each window.
    """
    first = pieces.values.row_starts()  # [W], the first piece of each word.
    # All pairs of a word and a window of its text; mostly, there is one window.
    windows_of_text = tf.math.bincount(
        tf.cast(text, tf.int32), minlength=tf.cast(ids.nrows(), tf.int32)
    )
    windows_of_text = tf.cast(windows_of_text, tf.int64)
    text_of_word = pieces.value_rowids()  # [W]
    counts = tf.gather(windows_of_text, text_of_word)
    first_window = tf.cumsum(windows_of_text, exclusive=True)
    window = tf.ragged.range(counts)
    word = window.value_rowids()  # [pairs]
    window = window.values + tf.gather(first_window, tf.gather(text_of_word, word))
    before = tf.gather(first, word) - tf.gather(start, window)
    after = tf.gather(end, window) - 1 - tf.gather(first, word)
    poorer = tf.cast(tf.minimum(before, after), tf.float64)
    length = tf.cast(tf.gather(end - start, window), tf.float64)
    # If the piece is outside the window, one of the sides is negative.
    score = poorer + packing.CONTEXT_LENGTH_WEIGHT * length
    score = tf.where(poorer >= 0, score, -1.0)
    best = tf.math.segment_max(score, word)
    is_best = score == tf.gather(best, word)
    return tf.math.segment_min(
        tf.boolean_mask(window, is_best), tf.boolean_mask(word, is_best)
    )
