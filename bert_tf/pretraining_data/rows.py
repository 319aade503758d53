"""Rows of sequences: pairs laid out and masked, thousands at once.

A sequence is [CLS] A [SEP] B [SEP]. The state at [CLS] stands for the whole sequence in
classification and learns that from next-sentence prediction. [SEP] marks the end of a
segment, and `segment_ids` (0 for A, 1 for B) tell every position which segment it is
in, even far from a [SEP] (section 3 of arXiv:1810.04805).

Each sequence has the same number of entries for masked positions, filled or not.
`masked_lm_weights` is 1 for a masked position and 0 for an unused entry, so that the
loss ignores unused entries while all shapes stay fixed.

The distributions of the masks are those of `release_sampling.mask`, which gives the
reasons for each draw. As in `pairs`, `arrays` is NumPy or TensorFlow.

Shape letters: B batch, S sequence, M masked positions, V vocabulary, P pieces of text.
"""

from typing import Any
from typing import NamedTuple

import numpy as np

from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.tokenization import vocabulary as vocabulary_module

# Lengths of spans in words: a geometric distribution, cut off at the maximum. Mean 3.8.
LENGTH_PARAMETER = 0.2
MAX_WORDS = 10
# Far more than are ever needed; the limit only guarantees termination.
_ATTEMPTS_PER_POSITION = 10
_SHARES = LENGTH_PARAMETER * (1 - LENGTH_PARAMETER) ** np.arange(MAX_WORDS)
# Cumulative probabilities of all lengths in words but the last.
_CUMULATIVE = np.cumsum(_SHARES / _SHARES.sum())[:-1]


def is_inside_word(vocabulary: vocabulary_module.Vocabulary) -> np.ndarray:
    """Returns bool [V]: whether a piece continues the word before it."""
    return np.array([token.startswith("##") for token in vocabulary.tokens])


def needs_words(options: Any) -> bool:
    """Returns whether whole words are masked, not pieces."""
    return options.do_whole_word_mask or options.masking == "span"


class RowMaker:
    """Lays out and masks sequences.

    Args:
        arrays: the module `numpy_arrays` or `graph_arrays`.
        vocabulary: that of the sequences.
        options: lengths and masking, of create_pretraining_data or run_pretraining.
    """

    def __init__(
        self, arrays: Any, vocabulary: vocabulary_module.Vocabulary, options: Any
    ):
        self._arrays = arrays
        self._vocabulary = vocabulary
        self._length = options.max_seq_length
        self._next_sentence = options.next_sentence
        self._masks = MaskSampler(arrays, vocabulary, options)
        self._needs_words = needs_words(options)
        self._is_inside_word = arrays.constant(is_inside_word(vocabulary))

    def rows(
        self, text: pairs_module.Text, pairs: pairs_module.Pairs, draws: Any
    ) -> dict[str, Any]:
        """Returns pairs as columns [B, length] of `schema.pretraining`.

        Args:
            text: the text that the pairs point into.
            pairs: B pairs, or B sequences without a second segment.
            draws: source of the draws of the masks.
        """
        arrays = self._arrays
        position = arrays.cast(arrays.arange(self._length), "int32")  # [S]
        # [B, 1], the first [SEP].
        end_a = arrays.cast(pairs.length_a + 1, "int32")[:, None]
        end = end_a
        if self._next_sentence:
            end = end_a + arrays.cast(pairs.length_b + 1, "int32")[:, None]
        is_real = position <= end  # [B, S]
        is_candidate = _candidates(position, end_a, end)
        source = self._source(pairs)
        ids = self._with_special(
            arrays.where(is_candidate, arrays.take(text.ids, source, mode="clip"), 0),
            end_a[:, 0],
            end[:, 0],
        )
        columns = {
            "input_ids": ids,
            "input_mask": arrays.as_flags(is_real),
            "segment_ids": arrays.as_flags((position > end_a) & is_real),
        }
        starts_word = None
        if text.starts_word is not None:
            starts_word = arrays.take(text.starts_word, source, mode="clip")
        elif self._needs_words:
            starts_word = ~arrays.take(self._is_inside_word, ids)
        lengths = arrays.cast(end[:, 0], "int64") + 1
        columns |= self._masks.mask(ids, is_candidate, lengths, draws, starts_word)
        if self._next_sentence:
            label = arrays.as_flags(pairs.is_random_next[:, None])
            columns["next_sentence_labels"] = label
        return columns

    def _source(self, pairs):
        """Returns the piece of the text at each position: int64 [B, S].

        It counts from A's first piece up to the first [SEP], and from B's first piece
        after it. At [CLS] and [SEP] it means nothing and may be out of range.
        """
        arrays, length_a = self._arrays, pairs.length_a
        starts = arrays.stack(
            [pairs.start_a - 1, pairs.start_b - length_a - 2], axis=1
        )  # [B, 2]
        sizes = arrays.stack([length_a + 2, self._length - 2 - length_a], axis=1)
        repeated = arrays.repeat(
            arrays.reshape(starts, [-1]), arrays.reshape(sizes, [-1])
        )
        repeated = arrays.reshape(repeated, [-1, self._length])
        return repeated + arrays.arange(self._length)

    def _with_special(self, ids, end_a, end):
        """Returns ids [B, S] with [CLS] and the [SEP] at two positions, int32 [B]."""
        arrays = self._arrays
        row = arrays.cast(arrays.arange(arrays.size(end)), "int32") * self._length
        ids = arrays.put(ids, row, self._vocabulary.cls_id)
        indices = arrays.concatenate([row + end_a, row + end])
        return arrays.put(ids, indices, self._vocabulary.sep_id)


def _candidates(position: Any, end_a: Any, end: Any) -> Any:
    """Returns bool [B, S]: whether a position contains a piece that may be masked.

    [CLS] and [SEP] are never masked: they are always in the same role, so predicting
    them teaches nothing. `position` is int32 [1, S]; `end_a` and `end`, int32 [B, 1],
    are the positions of [SEP].
    """
    return (position > 0) & (position != end_a) & (position < end)


class MaskSampler:
    """Draws masks; the arguments are those of `RowMaker`."""

    def __init__(
        self, arrays: Any, vocabulary: vocabulary_module.Vocabulary, options: Any
    ):
        self._arrays = arrays
        self._vocab_size = len(vocabulary)
        self._mask_id = vocabulary.mask_id
        self._options = options
        self._max_predictions = options.max_predictions_per_seq

    def mask(
        self,
        ids: Any,
        is_candidate: Any,
        lengths: Any,
        draws: Any,
        starts_word: Any,
    ) -> dict[str, Any]:
        """Returns masked sequences as columns of `schema.pretraining`.

        Args:
            ids: int32 [B, S].
            is_candidate: bool [B, S], whether a position may be chosen.
            lengths: int64 [B], number of pieces of each sequence.
            draws: source of all draws.
            starts_word: bool [B, S], whether a piece begins a word; may be None unless
                `needs_words`.
        """
        arrays, options = self._arrays, self._options
        wanted = arrays.cast(lengths, "float64") * options.masked_lm_prob
        num_wanted = arrays.cast(arrays.rint(wanted), "int64")
        num_wanted = arrays.clip(num_wanted, 1, self._max_predictions)
        if not needs_words(options):
            is_chosen = choose_positions(arrays, is_candidate, num_wanted, draws)
            return self._replaced(ids, is_chosen, None, draws)
        words = _words(arrays, starts_word, is_candidate)
        if options.masking == "span":
            spans = choose_spans(arrays, words, is_candidate, num_wanted, draws)
            return self._replaced(ids, *spans, draws)
        is_chosen = _choose_words(arrays, words, num_wanted, draws) & is_candidate
        return self._replaced(ids, is_chosen, None, draws)

    def _replaced(self, ids, is_chosen, together, draws):
        """Returns the rows with masks.

        Without `together`, each piece draws its own replacement. `together`, int64
        [B, S], is the first position of each span. The pieces of a span are masked,
        kept or randomized together, as in SpanBERT.
        """
        arrays, shares = self._arrays, self._options.shares
        length = is_chosen.shape[1]
        # Row and position as one index.
        indices = arrays.nonzero(arrays.reshape(is_chosen, [-1]))[0]
        rows, positions = indices // length, indices % length
        counts = arrays.count_nonzero(is_chosen, axis=1)
        is_used = arrays.arange(self._max_predictions) < counts[:, None]  # [B, M]
        entries = arrays.nonzero(arrays.reshape(is_used, [-1]))[0]
        originals = arrays.take(arrays.reshape(ids, [-1]), indices)
        chance = draws.uniform_at(rows, positions)
        if together is not None:
            first = rows * length + arrays.take(arrays.reshape(together, [-1]), indices)
            chance = arrays.take(chance, arrays.searchsorted(indices, first))
        random_ids = draws.uniform_at(rows, positions) * self._vocab_size
        replaced = arrays.where(
            chance < 1 - shares.random, originals, arrays.cast(random_ids, "int32")
        )
        replaced = arrays.where(chance < shares.mask, self._mask_id, replaced)
        positions = arrays.cast(positions, "int32")

        def entries_of(values):
            zeros = arrays.cast(arrays.zeros_like(is_used), "int32")
            return arrays.put(zeros, entries, values)

        masked = arrays.put(arrays.copy(ids), indices, replaced)
        return {
            "input_ids": masked,  # int32 [B, S]
            # [B, M], 0 or 0.0 where unused.
            "masked_lm_positions": entries_of(positions),  # Ascending.
            "masked_lm_ids": entries_of(originals),
            "masked_lm_weights": arrays.cast(is_used, "float32"),
        }


class Words(NamedTuple):
    """The words of sequences, counted from 0 in each."""

    word: Any  # int64 [B, S], the word of each position.
    sizes: Any  # int64 [B, S], the number of pieces of each word; 0 if there is none.


def _words(arrays, starts_word, is_candidate):
    length = starts_word.shape[1]
    # A sequence may begin inside a word; the rest of that word counts as a word.
    first = arrays.argmax(is_candidate, axis=1)[:, None]
    is_start = is_candidate & (starts_word | (arrays.arange(length) == first))
    word = arrays.cumsum(arrays.cast(is_start, "int64"), axis=1) - 1
    word = arrays.maximum(word, 0)
    rows = arrays.arange(arrays.size(word))[:, None]
    indices = (word + rows * length)[is_candidate]
    sizes = arrays.count(indices, arrays.size(word) * length)
    return Words(word, arrays.reshape(sizes, [-1, length]))


def choose_positions(
    arrays: Any, is_candidate: Any, num_wanted: Any, draws: Any
) -> Any:
    """Returns bool [B, S]: `num_wanted` candidates of each row, or all if fewer.

    The arguments are those of `choose_spans`.
    """
    keys = draws.shuffle_keys(is_candidate)
    rank = arrays.minimum(num_wanted, keys.shape[1])[:, None] - 1
    limit = arrays.take_along(arrays.sort(keys, axis=1), rank)
    return (keys <= limit) & is_candidate


def _choose_words(arrays, words, num_wanted, draws):
    """Returns bool [B, S]: whole words, taken in random order as long as they fit."""
    order = arrays.argsort(draws.shuffle_keys(words.sizes > 0), axis=1)

    def take(room, size):
        # A word that would exceed the number is skipped, as in the release.
        fits = (size > 0) & (size <= room)
        return room - arrays.where(fits, size, 0), fits

    sizes = arrays.take_along(words.sizes, order)
    is_taken = arrays.put_along(order, arrays.scan(take, num_wanted, sizes))
    return arrays.take_along(is_taken, words.word)


def choose_spans(
    arrays: Any, words: Words, is_candidate: Any, num_wanted: Any, draws: Any
) -> tuple[Any, Any]:
    """Chooses as many spans of whole words as fit; each gets one replacement.

    A span begins with the word at a random position. It ends when its length is
    reached, at the end of its segment, before a word of another span, or before a word
    that would exceed the number of positions.

    Args:
        arrays: the module `numpy_arrays` or `graph_arrays`.
        words: the words.
        is_candidate: bool [B, S], whether a position may be chosen.
        num_wanted: int64 [B], maximum number of positions to choose.
        draws: source of all draws.

    Returns:
        bool [B, S], the chosen positions; int64 [B, S], the first position of each
        position's span.

    Source: section 3.1 of "SpanBERT: Improving Pre-training by Representing and
    Predicting Spans" (Joshi et al., 2020).
    """
    length = words.word.shape[1]
    # Candidates first, in order.
    positions = arrays.argsort(
        arrays.cast(~is_candidate, "uint8"), axis=1, kind="stable"
    )
    before = arrays.cumsum(words.sizes, axis=1) - words.sizes  # Candidates.
    start = arrays.take_along(positions, arrays.minimum(before, length - 1))
    start = arrays.where(words.sizes > 0, arrays.cast(start, "int64"), length)
    # Whether a word is adjacent to the one before, not in the next segment.
    follows = start[:, 1:] == (start + words.sizes)[:, :-1]
    follows = arrays.pad(follows, [[0, 0], [1, 0]], "constant", constant_values=False)
    # Spans of all lengths may begin at the last word: [B, W], W = S + MAX_WORDS.
    sizes, start, follows = (
        arrays.pad(values, [[0, 0], [0, MAX_WORDS]], "constant", constant_values=none)
        for values, none in ((words.sizes, 0), (start, length), (follows, False))
    )
    num_candidates = arrays.count_nonzero(is_candidate, axis=1)
    number = arrays.arange(MAX_WORDS)
    row = arrays.arange(arrays.size(num_wanted))[:, None]
    cumulative = arrays.constant(_CUMULATIVE)
    taken_size = length + 1  # Of a word that no span may have: it fits nowhere.

    def with_room(free, room):
        """Returns the room, 0 where no further word fits."""
        return arrays.where(arrays.amin(free, axis=1) <= room, room, 0)

    def attempt(own_draws, free, first, room):
        chance = own_draws.uniform_rows(arrays.size(room), 2)
        anchor = chance[:, 0] * arrays.cast(num_candidates, "float64")
        anchor = arrays.cast(anchor, "int64")[:, None]
        anchor = arrays.take_along(positions, anchor)
        num_words = 1 + arrays.searchsorted(cumulative, chance[:, 1], side="right")
        # Up to MAX_WORDS words, the first with the anchor: [B, MAX_WORDS].
        window = arrays.take_along(words.word, anchor) + number
        size = arrays.take_along(free, window)
        used = arrays.cumsum(size, axis=1)
        fits = (number < num_words[:, None]) & (used <= room[:, None])
        fits &= (number == 0) | arrays.take_along(follows, window)
        fits = arrays.cumprod(arrays.cast(fits, "int64"), axis=1)
        is_new = fits > 0
        room = room - arrays.amax(used * fits, axis=1)
        indices = arrays.reshape(row * (length + MAX_WORDS) + window, [-1])
        size = arrays.where(~is_new, size, taken_size)
        free = arrays.put(free, indices, arrays.reshape(size, [-1]))
        first_of_new = arrays.where(
            is_new,
            arrays.take_along(start, window[:, :1]),
            arrays.take_along(first, window),
        )
        first = arrays.put(first, indices, arrays.reshape(first_of_new, [-1]))
        return free, first, with_room(free, room)

    free = arrays.where(sizes > 0, sizes, taken_size)  # [B, W]
    room = with_room(free, num_wanted)
    none = arrays.zeros_like(sizes) - 1
    _, first, _ = arrays.attempts(
        attempt, (free, none, room), draws, _ATTEMPTS_PER_POSITION * length
    )
    first = arrays.take_along(first, words.word)
    return (first >= 0) & is_candidate, first
