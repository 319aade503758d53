"""Masked positions, drawn for thousands of sequences at once.

The distributions are those of `release_masks.mask_tokens`, which gives the reasons for
each draw. Data creation and dynamic masking both use this module.

Shape letters: B batch, S sequence, M masked positions, V vocabulary.
"""

import dataclasses
from typing import Any

import numpy as np

from bert_tf.pretraining_data import draws as draws_module
from bert_tf.tokenization import vocabulary as vocabulary_module

# 32-bit keys take half the time of longer ones. If the position uses at most 12 of the
# bits, the random remainders are rarely equal; ties go to the lower position.
_MAX_PLACE_BITS = 12
# Lengths of spans in words: a geometric distribution, cut off at the maximum. Mean 3.8.
LENGTH_PARAMETER = 0.2
MAX_WORDS = 10
ATTEMPTS_PER_PLACE = 10


class MaskSampler:
    """Draws masks.

    Args:
        vocabulary: vocabulary that random pieces are drawn from.
        options: how to mask, of create_pretraining_data or run_pretraining.

    Attributes:
        max_predictions: maximum number of positions to choose, M.
    """

    def __init__(self, vocabulary: vocabulary_module.Vocabulary, options: Any):
        self._vocab_size = len(vocabulary)
        self._mask_id = vocabulary.mask_id
        self._is_inside_word = is_inside_word(vocabulary)
        self._options = options
        self.max_predictions = options.max_predictions_per_seq

    def mask(
        self,
        ids: np.ndarray,
        is_candidate: np.ndarray,
        lengths: np.ndarray,
        draws: draws_module.Draws | draws_module.RowDraws,
        starts_word: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """Returns masked sequences as columns of `schema.pretraining`.

        Args:
            ids: int32 [B, S].
            is_candidate: bool [B, S], whether a place may be chosen.
            lengths: int64 [B], number of pieces of each sequence.
            draws: source of all draws.
            starts_word: bool [B, S], whether a piece begins a word. None: all pieces
                that do not start with `##` do.
        """
        num_wanted = np.rint(lengths * self._options.masked_lm_prob).astype(np.int64)
        num_wanted = np.clip(num_wanted, 1, self.max_predictions)
        spans = self._options.masking == "span"
        if not (self._options.do_whole_word_mask or spans):
            is_chosen = _choose_places(is_candidate, num_wanted, draws)
            return self._replaced(ids, is_chosen, draws)
        if starts_word is None:
            starts_word = ~self._is_inside_word[ids]
        word, sizes = _words(starts_word, is_candidate)
        if spans:
            chosen = choose_spans(word, sizes, is_candidate, num_wanted, draws)
            return self._replaced(ids, chosen.is_chosen, draws, chosen.first_place)
        is_chosen = _choose_words(word, sizes, num_wanted, draws) & is_candidate
        return self._replaced(ids, is_chosen, draws)

    def _replaced(self, ids, is_chosen, draws, together=None):
        """Returns the rows with masks.

        Without `together`, each piece draws its own replacement. `together`, int64
        [B, S], is equal for places that are masked, kept or randomized together: the
        pieces of a span, as in SpanBERT.
        """
        shares = self._options.shares
        # Twice as fast as np.nonzero with two axes.
        places = np.flatnonzero(is_chosen)
        rows, columns = np.divmod(places, is_chosen.shape[1])
        counts = np.bincount(rows, minlength=len(ids))
        is_used = np.arange(self.max_predictions) < counts[:, None]
        positions = np.zeros(is_used.shape, np.int32)
        labels = np.zeros_like(positions)
        originals = ids.take(places)
        positions[is_used] = columns
        labels[is_used] = originals
        chance = draws.uniform_at(rows, columns)
        if together is not None:
            groups = rows * ids.shape[1] + together.take(places)
            _, first, group = np.unique(groups, return_index=True, return_inverse=True)
            chance = chance[first][group]
        random_ids = (draws.uniform_at(rows, columns) * self._vocab_size).astype(
            np.int32
        )
        replaced = np.where(chance < 1 - shares.random, originals, random_ids)
        replaced[chance < shares.mask] = self._mask_id
        masked = ids.copy()
        np.put(masked, places, replaced)
        return {
            "input_ids": masked,  # int32 [B, S]
            # [B, M], 0 or 0.0 where unused.
            "masked_lm_positions": positions,  # Ascending.
            "masked_lm_ids": labels,  # The original pieces.
            "masked_lm_weights": is_used.astype(np.float32),
        }


def is_inside_word(vocabulary: vocabulary_module.Vocabulary) -> np.ndarray:
    """Returns bool [V]: whether a piece continues the word before it."""
    return np.array([token.startswith("##") for token in vocabulary.tokens])


def _choose_words(word, sizes, num_wanted, draws):
    """Returns bool [B, S]: whole words, taken in random order as long as they fit."""
    order = np.argsort(_shuffle_keys(sizes > 0, draws), axis=1)
    sizes = np.take_along_axis(sizes, order, axis=1)
    is_taken = np.zeros(sizes.shape, bool)
    room = num_wanted.copy()
    for rank in range(sizes.shape[1]):
        # A word that would exceed the number is skipped, as in the release.
        fits = (sizes[:, rank] > 0) & (sizes[:, rank] <= room)
        is_taken[:, rank] = fits
        room -= np.where(fits, sizes[:, rank], 0)
        if not room.any():
            break
    by_word = np.empty_like(is_taken)
    np.put_along_axis(by_word, order, is_taken, axis=1)
    return np.take_along_axis(by_word, word, axis=1)


def _words(starts_word, is_candidate):
    """Returns the word of each place, int64 [B, S], and the words' sizes [B, S]."""
    is_start = is_candidate & starts_word
    # A sequence may begin inside a word; the rest of that word counts as a word.
    first = np.argmax(is_candidate, axis=1)
    is_start[np.arange(len(is_start)), first] = True
    word = np.maximum(np.cumsum(is_start, axis=1) - 1, 0)
    num_rows, length = is_start.shape
    flat = (word + np.arange(num_rows)[:, None] * length)[is_candidate]
    sizes = np.bincount(flat, minlength=num_rows * length)
    return word, sizes.reshape(num_rows, length)


def _choose_places(is_candidate, num_wanted, draws):
    """Returns bool [B, S]: `num_wanted` candidates of each row, or all if fewer."""
    keys = _shuffle_keys(is_candidate, draws)
    most = min(int(num_wanted.max()), keys.shape[1])
    smallest = np.sort(np.partition(keys, most - 1, axis=1)[:, :most], axis=1)
    num_wanted = np.minimum(num_wanted, most)
    limit = smallest[np.arange(len(keys)), num_wanted - 1]
    return (keys <= limit[:, None]) & is_candidate


def _shuffle_keys(is_item, draws):
    """Returns sort keys [B, S] without ties: random for items, the maximum elsewhere.

    The keys are uint32 with at least 20 random bits, or uint64 for long rows.
    """
    num_rows, length = is_item.shape
    place_bits = length.bit_length()
    is_short = place_bits <= _MAX_PLACE_BITS
    dtype: np.dtype[Any] = np.dtype(np.uint32 if is_short else np.uint64)
    words = draws.words(num_rows * -(-length * dtype.itemsize // 8))
    keys = words.view(dtype).reshape(num_rows, -1)[:, :length]
    bits = dtype.type(place_bits)
    keys = (keys >> bits << bits) | np.arange(length, dtype=dtype)
    np.copyto(keys, np.iinfo(dtype).max, where=~is_item)
    return keys


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChosenSpans:
    """The positions to mask, and which of them belong together."""

    is_chosen: np.ndarray  # bool [B, S]
    first_place: np.ndarray  # int64 [B, S], first position of each position's span.


def choose_spans(
    word: np.ndarray,
    sizes: np.ndarray,
    is_candidate: np.ndarray,
    num_wanted: np.ndarray,
    draws: draws_module.Draws | draws_module.RowDraws,
) -> ChosenSpans:
    """Returns as many spans of whole words as fit, with one replacement per span.

    A span begins with the word at a random position. It ends when its length is
    reached, at the end of its segment, before a word of another span, or before a word
    that would exceed the number of positions.

    Args:
        word: int64 [B, S], index of the word that each place belongs to.
        sizes: int64 [B, S], number of places of each word; 0 if there is no such word.
        is_candidate: bool [B, S], whether a place may be chosen.
        num_wanted: int64 [B], maximum number of places to choose.
        draws: source of all draws.

    Source: section 3.1 of "SpanBERT: Improving Pre-training by Representing and
    Predicting Spans" (Joshi et al., 2020).
    """
    rows = np.arange(len(word))
    start, has_next = _neighbors(word, sizes, is_candidate)
    places = np.argsort(~is_candidate, axis=1, kind="stable")  # Candidates first.
    num_places = is_candidate.sum(axis=1)
    is_taken, first_place = np.zeros(sizes.shape, bool), np.zeros_like(sizes)
    room = np.where(num_places > 0, num_wanted, 0)
    # Far more attempts than are ever needed; the limit only guarantees termination.
    for _ in range(ATTEMPTS_PER_PLACE * sizes.shape[1]):
        smallest = np.where(is_taken | (sizes == 0), sizes.shape[1] + 1, sizes)
        room = np.where(smallest.min(axis=1) <= room, room, 0)
        if not room.any():
            break
        words = draws.words(2 * len(rows)).reshape(-1, 2)
        chance = (words >> np.uint64(11)) * 2.0**-53  # Uniform in [0, 1).
        anchor = places[rows, (chance[:, 0] * num_places).astype(np.int64)]
        length = 1 + np.searchsorted(CUMULATIVE, chance[:, 1], side="right")
        current = word[rows, anchor]
        first = start[rows, current]
        goes_on = room > 0
        for number in range(MAX_WORDS):
            size = sizes[rows, current]
            goes_on &= (number < length) & (size <= room) & ~is_taken[rows, current]
            taking = rows[goes_on]
            if not taking.size:
                break
            is_taken[taking, current[goes_on]] = True
            first_place[taking, current[goes_on]] = first[goes_on]
            room[goes_on] -= size[goes_on]
            goes_on &= has_next[rows, current]
            current = np.minimum(current + 1, sizes.shape[1] - 1)
    return ChosenSpans(
        is_chosen=np.take_along_axis(is_taken, word, axis=1) & is_candidate,
        first_place=np.take_along_axis(first_place, word, axis=1),
    )


def _neighbors(word, sizes, is_candidate):
    """Returns each word's first place, and whether the next word is adjacent."""
    length = word.shape[1]
    start = np.full(sizes.shape, length)
    rows, columns = np.nonzero(is_candidate)
    words = rows * length + word[rows, columns]
    is_first = np.diff(words, prepend=-1) != 0
    start.ravel()[words[is_first]] = columns[is_first]
    after = np.pad(start[:, 1:], ((0, 0), (0, 1)), constant_values=length)
    return start, (start + sizes == after) & (after < length)


_SHARES = LENGTH_PARAMETER * (1 - LENGTH_PARAMETER) ** np.arange(MAX_WORDS)
# Cumulative probabilities of all lengths in words but the last.
CUMULATIVE = np.cumsum(_SHARES / _SHARES.sum())[:-1]
