"""Splits texts into words with their positions, in a graph.

Shape letters: B batch, W words, C characters.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextWords:
    """The words of a batch of texts, and where they are."""

    texts: tf.Tensor  # string [B], without bytes that are not UTF-8.
    codes: tf.RaggedTensor  # int32 [B, C], code points.
    words: tf.RaggedTensor  # string [B, W]
    starts: tf.RaggedTensor  # int64 [B, W], the word's first character in its text.
    ends: tf.RaggedTensor  # int64 [B, W], the character after its last.


def split(
    texts: tf.Tensor, *, separators: Iterable[int], alone: Iterable[int] = ()
) -> TextWords:
    """Splits texts into words.

    Args:
        texts: string [B], UTF-8.
        separators: code points between words.
        alone: code points that form words of their own.
    """
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    codes = tf.strings.unicode_decode(texts, "UTF-8")
    is_space = is_among(codes.flat_values, separators)
    is_alone = is_among(codes.flat_values, alone)
    within = tf.ragged.range(codes.row_lengths()).flat_values
    breaks = is_space | is_alone
    is_first = within == 0
    edge = tf.ones([1], bool)
    is_after = tf.concat([edge, breaks], axis=0)[:-1]
    is_before = tf.concat([is_first | breaks, edge], axis=0)[1:]
    is_start = ~is_space & (is_alone | is_first | is_after)
    is_end = ~is_space & (is_alone | is_before)
    starts = tf.where(is_start)[:, 0]
    return words_at(texts, codes, starts, tf.where(is_end)[:, 0] + 1 - starts)


def words_at(
    texts: tf.Tensor, codes: tf.RaggedTensor, starts: tf.Tensor, lengths: tf.Tensor
) -> TextWords:
    """Returns the words of texts at given places.

    Args:
        texts, codes: see `TextWords`.
        starts: int64 [words of all texts], the index of each word's first character
            among the characters of all texts, ascending.
        lengths: int64 [words of all texts], in characters.
    """
    within = tf.ragged.range(codes.row_lengths()).flat_values
    characters = tf.ragged.range(starts, starts + lengths)
    words = tf.strings.unicode_encode(
        characters.with_values(tf.gather(codes.flat_values, characters.values)), "UTF-8"
    )
    splits = tf.cast(tf.searchsorted(starts, codes.row_splits), tf.int64)
    starts = tf.gather(within, starts)

    def by_text(values):
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    return TextWords(
        texts=texts,
        codes=codes,
        words=by_text(words),
        starts=by_text(starts),
        ends=by_text(starts + lengths),
    )


def is_among(codes: tf.Tensor, members: Iterable[int]) -> tf.Tensor:
    """Returns whether each code point is in a set of them; bool, shaped as `codes`."""
    ordered = np.array(sorted(set(members)), np.int32)
    if not len(ordered):
        return tf.zeros_like(codes, bool)
    # Alternately where a run of consecutive members starts and where it has ended.
    steps = np.flatnonzero(np.diff(ordered) > 1)
    starts, ends = ordered[[0, *(steps + 1)]], ordered[[*steps, -1]] + 1
    borders = np.sort(np.concatenate([starts, ends]))
    return tf.searchsorted(borders, codes, side="right") % 2 == 1
