"""Records as TensorFlow ops: sequences laid out as rows and masked.

The layout is that of `vectorized_sampling`, and the distributions of the masks and
spans are those of `vectorized_masks`. Both modules give the reasons.

Shape letters: B batch, S sequence, M masked positions.
"""

from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.pretraining_data import graph_draws
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import vectorized_masks
from bert_tf.tokenization import vocabulary as vocabulary_module


class RowMaker:
    """Lays out and masks sequences.

    Args:
        options: lengths and masking, of create_pretraining_data or run_pretraining.
        vocabulary: that of the sequences.
    """

    def __init__(self, options: Any, vocabulary: vocabulary_module.Vocabulary):
        self._options = options
        self._vocabulary = vocabulary
        with tf.init_scope():
            self._is_inside_word = tf.constant(
                vectorized_masks.is_inside_word(vocabulary)
            )

    def rows(
        self, ids: tf.Tensor, pairs: pairs_module.Pairs, keys: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns pairs as columns [B, length] of `schema.pretraining`.

        Args:
            ids: int32 [P], the pieces of the text that the pairs point into.
            pairs: B pairs, or B sequences without a second segment.
            keys: uint64 [B], one for the masks of each row.
        """
        place = tf.range(self._options.max_seq_length, dtype=tf.int64)  # [S]
        end_a = pairs.length_a[:, None] + 1  # [B, 1], place of the first [SEP].
        end = end_a
        if self._options.next_sentence:
            end = end_a + pairs.length_b[:, None] + 1
        source = tf.where(
            place <= end_a,
            pairs.start_a[:, None] + place - 1,
            pairs.start_b[:, None] + place - end_a - 1,
        )
        is_candidate = (place > 0) & (place != end_a) & (place < end)
        pieces = tf.gather(ids, tf.where(is_candidate, source, 0))
        is_separator = (place == end_a) | (place == end)
        special = tf.where(is_separator, self._vocabulary.sep_id, tf.zeros_like(pieces))
        special = tf.where(place == 0, self._vocabulary.cls_id, special)
        pieces = tf.where(is_candidate, pieces, special)  # [B, S]
        columns = {
            "input_ids": pieces,
            "input_mask": tf.cast(place <= end, tf.int32),
            "segment_ids": tf.cast((place > end_a) & (place <= end), tf.int32),
        }
        draws = graph_draws.GraphRowDraws(keys)
        columns |= self._masked(pieces, is_candidate, end[:, 0] + 1, draws)
        if self._options.next_sentence:
            label = tf.cast(pairs.is_random_next, tf.int32)
            columns["next_sentence_labels"] = label[:, None]
        return columns

    def _masked(self, ids, is_candidate, lengths, draws):
        options = self._options
        wanted = tf.cast(lengths, tf.float64) * options.masked_lm_prob
        wanted = tf.clip_by_value(
            tf.cast(tf.round(wanted), tf.int64), 1, options.max_predictions_per_seq
        )
        together = None
        if not (options.do_whole_word_mask or options.masking == "span"):
            keys = draws.uniform(options.max_seq_length)
            is_chosen = _ranks(keys, is_candidate) < wanted[:, None]
        else:
            starts_word = ~tf.gather(self._is_inside_word, ids)
            word, sizes = _words(starts_word, is_candidate)
            if options.masking == "span":
                is_chosen, together = choose_spans(
                    word,
                    tf.cast(sizes, tf.int32),
                    is_candidate,
                    tf.cast(wanted, tf.int32),
                    draws,
                )
            else:
                keys = draws.uniform(options.max_seq_length)
                is_chosen = _choose_words(keys, word, sizes, wanted)
        is_chosen &= is_candidate
        chosen = tf.where(is_chosen)  # [chosen places, (row, place)], ascending.
        rows, places = chosen[:, 0], tf.cast(chosen[:, 1], tf.int32)
        return {
            "input_ids": self._replaced(ids, is_chosen, draws, together),
            "masked_lm_positions": self._padded(rows, places, ids),
            "masked_lm_ids": self._padded(rows, ids[is_chosen], ids),
            "masked_lm_weights": self._padded(
                rows, tf.ones_like(places, tf.float32), ids
            ),
        }

    def _replaced(self, ids, is_chosen, draws, together=None):
        """Returns the rows with masks.

        Without `together`, each piece draws its own replacement. `together`, int32
        [B, S], is equal for the pieces of a span, which share one.
        """
        shares, length = self._options.shares, self._options.max_seq_length
        chance = draws.uniform(length)
        if together is not None:
            chance = tf.gather(chance, together, batch_dims=1)
        random_ids = draws.below(len(self._vocabulary), length)
        replaced = tf.where(
            chance < 1 - shares.random, ids, tf.cast(random_ids, tf.int32)
        )
        mask_id = self._vocabulary.mask_id
        replaced = tf.where(chance < shares.mask, mask_id, replaced)
        return tf.where(is_chosen, replaced, ids)

    def _padded(self, rows, values, ids):
        """Returns [B, M]: the values of each row's chosen places, then zeros."""
        ragged = tf.RaggedTensor.from_value_rowids(
            values, rows, nrows=tf.shape(ids, tf.int64)[0], validate=False
        )
        return ragged.to_tensor(shape=[None, self._options.max_predictions_per_seq])


def _ranks(keys, is_item):
    """Returns each item's rank among its row's items by key, int64 [B, S]."""
    order = tf.argsort(tf.where(is_item, keys, np.inf), axis=1, stable=True)
    return tf.cast(tf.argsort(order, axis=1, stable=True), tf.int64)


def _words(starts_word, is_candidate):
    """Returns the word of each place, int32 [B, S], and the words' sizes, int64."""
    length = starts_word.shape[1]
    # A sequence may begin inside a word; the rest of that word counts as a word.
    first = tf.argmax(is_candidate, axis=1, output_type=tf.int32)
    is_first = tf.one_hot(first, length, on_value=True, off_value=False)
    is_start = is_candidate & (starts_word | is_first)
    word = tf.maximum(tf.cumsum(tf.cast(is_start, tf.int32), axis=1) - 1, 0)
    sizes = tf.math.bincount(
        tf.where(is_candidate, word, length),
        minlength=length + 1,
        axis=-1,
        dtype=tf.int64,
    )[:, :length]
    return word, tf.ensure_shape(sizes, [None, length])


def _choose_words(keys, word, sizes, wanted):
    """Returns bool [B, S]: whole words, taken in random order as long as they fit.

    Args:
        keys: float64 [B, S], random.
        word: int32 [B, S], the word of each place.
        sizes: int64 [B, S], the number of places of each word.
        wanted: int64 [B], the number of pieces to choose.
    """
    order = tf.argsort(tf.where(sizes > 0, keys, np.inf), axis=1, stable=True)
    sizes = tf.gather(sizes, order, batch_dims=1)

    def take(state, size):
        room, _ = state
        # A word that would exceed the number is skipped, as in the release.
        fits = (size > 0) & (size <= room)
        return room - tf.where(fits, size, 0), fits

    initial = (wanted, tf.zeros_like(wanted, tf.bool))
    _, taken = tf.scan(take, tf.transpose(sizes), initial)  # [S, B], by rank.
    rank = tf.argsort(order, axis=1, stable=True)  # Of each word, [B, S].
    by_word = tf.gather(tf.transpose(taken), rank, batch_dims=1)
    return tf.gather(by_word, word, batch_dims=1)


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
    """Returns as many spans of whole words as fit; see `vectorized_masks.choose_spans`.

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
    limits = tf.constant(vectorized_masks.CUMULATIVE)

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
        offset = tf.range(vectorized_masks.MAX_WORDS)
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
        maximum_iterations=vectorized_masks.ATTEMPTS_PER_PLACE * length,
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
