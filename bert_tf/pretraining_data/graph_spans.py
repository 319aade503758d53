"""Spans of words to mask, as TensorFlow ops.

The algorithm and the distributions are those of `vectorized_spans`, which gives the
source.

Shape letters: B batch, S sequence.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_tf.pretraining_data import graph_draws
from bert_tf.pretraining_data import vectorized_spans

_ATTEMPTS_PER_PLACE = 10


class ChosenSpans(NamedTuple):
    """The positions to mask, and which of them belong together."""

    is_chosen: tf.Tensor  # bool [B, S]
    first_place: tf.Tensor  # int32 [B, S], first position of each position's span.


def choose_spans(
    word: tf.Tensor,
    sizes: tf.Tensor,
    is_candidate: tf.Tensor,
    num_wanted: tf.Tensor,
    draws: graph_draws.GraphRowDraws,
) -> ChosenSpans:
    """Returns as many spans of whole words as fit; see `vectorized_spans.choose_spans`.

    Args:
        word: int32 [B, S], index of the word that each place belongs to.
        sizes: int32 [B, S], number of places of each word; 0 if there is no such word.
        is_candidate: bool [B, S], whether a place may be chosen.
        num_wanted: int32 [B], maximum number of places to choose.
        draws: source of all draws.
    """
    length = sizes.shape[1]
    start, has_next = _neighbors(word, sizes, is_candidate)
    # Candidates first, in order.
    places = tf.argsort(tf.cast(~is_candidate, tf.int32), axis=1, stable=True)
    num_places = tf.math.count_nonzero(is_candidate, axis=1)
    limits = tf.constant(vectorized_spans.CUMULATIVE)

    def with_room(is_taken, room):
        """Returns the room, 0 where no further word fits."""
        free = tf.where(is_taken | (sizes == 0), length + 1, sizes)
        return tf.where(tf.reduce_min(free, axis=1) <= room, room, 0)

    def attempt(keys, is_taken, first_place, room):
        own_draws = graph_draws.GraphRowDraws(keys)
        chance = own_draws.uniform(2)
        anchor = chance[:, 0] * tf.cast(num_places, tf.float64)
        anchor = _at(places, tf.cast(anchor, tf.int32))
        num_words = 1 + tf.searchsorted(limits, chance[:, 1], side="right")
        first = _at(word, anchor)
        num_words = _words_that_fit(first, num_words, is_taken, room)
        last = first + num_words
        index = tf.range(length)
        is_new = (index >= first[:, None]) & (index < last[:, None])
        taken = tf.reduce_sum(tf.where(is_new, sizes, 0), axis=1)
        is_taken |= is_new
        first_place = tf.where(is_new, _at(start, first)[:, None], first_place)
        return own_draws.keys, is_taken, first_place, with_room(is_taken, room - taken)

    def _words_that_fit(first, num_words, is_taken, room):
        """Returns how many words from `first` on a span takes, int32 [B]."""
        offset = tf.range(vectorized_spans.MAX_WORDS)
        window = tf.minimum(first[:, None] + offset, length - 1)
        used = tf.cumsum(tf.gather(sizes, window, batch_dims=1), axis=1)
        follows = tf.gather(has_next, window, batch_dims=1)[:, :-1]
        follows = tf.pad(follows, [[0, 0], [1, 0]], constant_values=True)
        fits = (offset < num_words[:, None]) & (used <= room[:, None]) & follows
        fits &= ~tf.gather(is_taken, window, batch_dims=1)
        return tf.reduce_sum(tf.math.cumprod(tf.cast(fits, tf.int32), axis=1), axis=1)

    nothing = tf.zeros_like(is_candidate)
    room = with_room(nothing, tf.where(num_places > 0, num_wanted, 0))
    # Far more attempts than are ever needed; the limit only guarantees termination.
    _, is_taken, first_place, _ = tf.while_loop(
        lambda keys, is_taken, first_place, room: tf.reduce_any(room > 0),
        attempt,
        (draws.keys, nothing, tf.zeros_like(sizes), room),
        maximum_iterations=_ATTEMPTS_PER_PLACE * length,
    )
    return ChosenSpans(
        is_chosen=tf.gather(is_taken, word, batch_dims=1) & is_candidate,
        first_place=tf.gather(first_place, word, batch_dims=1),
    )


def _neighbors(word, sizes, is_candidate):
    """Returns each word's first place, and whether the next word is adjacent."""
    length = sizes.shape[1]
    place = tf.broadcast_to(tf.range(length), tf.shape(word))
    shape = tf.shape(word)
    rows = tf.broadcast_to(tf.range(shape[0])[:, None], shape)
    at = tf.stack([rows, word], axis=-1)[is_candidate]
    start = tf.tensor_scatter_nd_min(tf.fill(shape, length), at, place[is_candidate])
    after = tf.pad(start[:, 1:], [[0, 0], [0, 1]], constant_values=length)
    return start, (start + sizes == after) & (after < length)


def _at(values, index):
    """Returns values [B, S] at one index [B] per row: [B]."""
    return tf.gather(values, index, axis=1, batch_dims=1)
