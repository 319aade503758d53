"""Spans of words to mask, drawn for many sequences at once.

All pieces of a span share one replacement: all [MASK], all kept, or all random.

Shape letters: B batch, S sequence.

Source: section 3.1 of "SpanBERT: Improving Pre-training by Representing and Predicting
Spans" (Joshi et al., 2020).
"""

import dataclasses

import numpy as np

from bert_tf.pretraining_data import draws as draws_module

# Lengths in words follow a geometric distribution, cut off at the maximum. Mean 3.8.
LENGTH_PARAMETER = 0.2
MAX_WORDS = 10
_ATTEMPTS_PER_PLACE = 10


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
    """Returns as many spans of whole words as fit.

    A span begins with the word at a random position. It ends when its length is
    reached, at the end of its segment, before a word of another span, or before a word
    that would exceed the number of positions.

    Args:
        word: int64 [B, S], index of the word that each place belongs to.
        sizes: int64 [B, S], number of places of each word; 0 if there is no such word.
        is_candidate: bool [B, S], whether a place may be chosen.
        num_wanted: int64 [B], maximum number of places to choose.
        draws: source of all draws.
    """
    rows = np.arange(len(word))
    start, has_next = _neighbors(word, sizes, is_candidate)
    places = np.argsort(~is_candidate, axis=1, kind="stable")  # Candidates first.
    num_places = is_candidate.sum(axis=1)
    is_taken, first_place = np.zeros(sizes.shape, bool), np.zeros_like(sizes)
    room = np.where(num_places > 0, num_wanted, 0)
    # Far more attempts than are ever needed; the limit only guarantees termination.
    for _ in range(_ATTEMPTS_PER_PLACE * sizes.shape[1]):
        smallest = np.where(is_taken | (sizes == 0), sizes.shape[1] + 1, sizes)
        room = np.where(smallest.min(axis=1) <= room, room, 0)
        if not room.any():
            break
        chance = _uniform(draws.words(2 * len(rows)).reshape(-1, 2))
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


def _uniform(words):
    return (words >> np.uint64(11)) * 2.0**-53


def _cumulative():
    """Returns the cumulative probabilities of all lengths but the last."""
    lengths = np.arange(1, MAX_WORDS + 1)
    shares = LENGTH_PARAMETER * (1 - LENGTH_PARAMETER) ** (lengths - 1)
    return np.cumsum(shares / shares.sum())[:-1]


# Cumulative probabilities of all lengths in words but the last.
CUMULATIVE = _cumulative()
