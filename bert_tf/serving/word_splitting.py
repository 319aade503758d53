"""Splits texts into words with their positions, in a graph.

Shape letters: B batch, W words, C characters.
"""

import dataclasses
from collections.abc import Iterable

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
    is_start = ~is_space & (is_alone | is_first | _shifted(breaks, 1))
    is_end = ~is_space & (is_alone | _shifted(is_first | breaks, -1))
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
    """Returns whether each code point is a member of a set; bool, shaped as `codes`.

    Args:
        codes: int32 tensor.
        members: the code points in the set.
    """
    ordered = sorted(set(members))
    if not ordered:
        return tf.zeros_like(codes, bool)
    # Alternately where a run of consecutive members starts and where it has ended.
    borders = [
        code
        for number, code in enumerate(ordered)
        if number == 0 or ordered[number - 1] != code - 1
    ]
    borders += [
        code + 1
        for number, code in enumerate(ordered)
        if number + 1 == len(ordered) or ordered[number + 1] != code + 1
    ]
    borders = tf.constant(sorted(borders), tf.int32)
    return tf.searchsorted(borders, codes, side="right") % 2 == 1


def _shifted(flags, steps):
    """Returns flags shifted by one to the right or the left, filled with True."""
    end = tf.ones([1], bool)
    if steps > 0:
        return tf.concat([end, flags], axis=0)[:-1]
    return tf.concat([flags, end], axis=0)[1:]
