"""NumPy for `pairs`, and random numbers that are identical in every version of NumPy.

NumPy guarantees the raw output of its bit generators but not that of its distributions.
So only raw words come from NumPy, and the distributions are computed here.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.data import ordering

_TWO_TO_THE_MINUS_53 = 2.0**-53
# Passes that advance together; bounds the memory for many tiny documents.
_MAX_PASSES_AT_A_TIME = 1 << 17


class Arrays:
    """The functions on arrays that `pairs` uses."""

    take = staticmethod(np.take)
    where = staticmethod(np.where)
    minimum = staticmethod(np.minimum)
    maximum = staticmethod(np.maximum)
    clip = staticmethod(np.clip)
    search = staticmethod(np.searchsorted)
    concat = staticmethod(np.concatenate)
    cumsum = staticmethod(np.cumsum)
    repeat = staticmethod(np.repeat)
    arange = staticmethod(np.arange)
    full_like = staticmethod(np.full_like)
    zeros_like = staticmethod(np.zeros_like)
    size = staticmethod(len)

    @staticmethod
    def passes(document_starts: np.ndarray, dupe_factor: int) -> Iterator[np.ndarray]:
        """Yields arrays of document indices, each `dupe_factor` times in total."""
        documents = np.arange(len(document_starts) - 1)
        at_a_time = max(1, _MAX_PASSES_AT_A_TIME // len(documents))
        for done in range(0, dupe_factor, at_a_time):
            yield np.tile(documents, min(at_a_time, dupe_factor - done))

    @staticmethod
    def loop(
        step: Callable[..., Any], state: Sequence[np.ndarray], kinds: Sequence[type]
    ) -> list[np.ndarray]:
        """Calls step(index, *state) -> (outputs, state) until the state is empty.

        Args:
            step: the function.
            state: arrays of the same length.
            kinds: int or bool for each output.

        Returns:
            Each of the outputs, concatenated over the calls.
        """
        steps: list[Sequence[np.ndarray]] = []
        while len(state[0]):
            outputs, state = step(len(steps), *state)
            steps.append(outputs)
        return [np.concatenate(column) for column in zip(*steps, strict=True)]

    @staticmethod
    def replaced(
        is_replaced: np.ndarray,
        columns: Sequence[np.ndarray],
        compute: Callable[[Any], Sequence[np.ndarray]],
    ) -> list[np.ndarray]:
        """Returns columns in which compute(rows) replaces the values of some rows."""
        rows = np.flatnonzero(is_replaced)
        result = [column.copy() for column in columns]
        for column, values in zip(result, compute(rows), strict=True):
            column[rows] = values
        return result


class Draws:
    """A stream of random numbers.

    Args:
        seed: integers that determine the stream.
    """

    def __init__(self, *seed: int):
        self._bits = np.random.SFC64(np.random.SeedSequence(seed))

    def words(self, count: int) -> np.ndarray:
        """Returns random words: uint64 [count]."""
        return self._bits.random_raw(count)

    def uniform(self, count: int) -> np.ndarray:
        """Returns numbers in [0, 1): float64 [count]."""
        return (self.words(count) >> np.uint64(11)) * _TWO_TO_THE_MINUS_53

    def uniform_for(self, values: np.ndarray) -> np.ndarray:
        """Returns a number in [0, 1) for each of some values: float64 [B]."""
        return self.uniform(len(values))

    def part(self, number: int) -> "Draws":
        """Returns the stream for an iteration of a loop: NumPy's stream goes on."""
        return self

    def below(self, limits: np.ndarray) -> np.ndarray:
        """Returns an integer from 0 to limit - 1 for each of `limits`: int64 [B]."""
        # 53 random bits against limits below 2**31: the bias is under 2**-22.
        return (self.uniform(len(limits)) * limits).astype(np.int64)

    def uniform_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Returns a number in [0, 1) for each of N positions: float64 [N].

        Args:
            rows: int64 [N], rows of the places in an array [B, S].
            columns: int64 [N], their columns.
        """
        return self.uniform(len(rows))

    def heads(self, counts: np.ndarray) -> np.ndarray:
        """Returns the number of heads among `counts` fair coins: int64 [B]."""
        result = np.zeros(len(counts), np.int64)
        for done in range(0, int(counts.max(initial=0)), 64):
            tossing = np.flatnonzero(counts > done)
            num_bits = np.minimum(counts[tossing] - done, 64).astype(np.uint64)
            words = self.words(len(tossing)) >> (np.uint64(64) - num_bits)
            bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64)
            result[tossing] += bits.sum(axis=1, dtype=np.int64)
        return result

    def permutation(self, count: int) -> np.ndarray:
        """Returns the numbers 0 to count - 1 in random order: int64 [count]."""
        return np.argsort(self.words(count), kind="stable")


class RowDraws:
    """Random numbers for the rows of an array, each row a function of its key alone.

    The numbers of a row do not depend on the other rows of the array. The n-th call
    returns the same numbers for the same key.

    Args:
        keys: uint64 [B], from `row_keys`.
    """

    def __init__(self, keys: np.ndarray):
        self._keys = keys

    def words(self, count: int) -> np.ndarray:
        """Returns random words, the same number for each row: uint64 [count]."""
        self._keys = ordering.mix(self._keys)
        places = np.arange(count // max(len(self._keys), 1), dtype=np.uint64)
        with np.errstate(over="ignore"):
            return ordering.mix((self._keys[:, None] + places).ravel())

    def uniform_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Returns a number in [0, 1) for each position, as `Draws.uniform_at`."""
        self._keys = ordering.mix(self._keys)
        with np.errstate(over="ignore"):
            words = ordering.mix(self._keys[rows] + columns.astype(np.uint64))
        return (words >> np.uint64(11)) * _TWO_TO_THE_MINUS_53


def row_keys(seed: int, step: int, rows: np.ndarray) -> np.ndarray:
    """Returns a key for each row of a step: uint64 [B].

    Args:
        seed: seed of the run.
        step: index of the step.
        rows: int [B], indices of the rows in the step's global batch.
    """
    # Inverted, because `ordering.Order` mixes (seed, epoch, row) in the same way.
    key = ordering.mix(~np.uint64(seed % 2**64))
    with np.errstate(over="ignore"):
        key = ordering.mix(key + np.uint64(step))
        return ordering.mix(key + np.asarray(rows).astype(np.uint64))
