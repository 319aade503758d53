"""NumPy for `pairs` and `rows`, and random numbers that no version of NumPy changes.

NumPy guarantees the raw output of its bit generators but not that of its distributions.
So only raw words come from NumPy, and the distributions are computed here.
"""

import functools
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.data import ordering

_TWO_TO_THE_MINUS_53 = 2.0**-53
# 32-bit keys take half the time of longer ones. If the position uses at most 12 of the
# bits, the random remainders are rarely equal; ties go to the lower position.
MAX_POSITION_BITS = 12
# Passes that advance together; bounds the memory for many tiny documents.
_MAX_PASSES_AT_A_TIME = 1 << 17


class Arrays:
    """The functions on arrays that `pairs` and `rows` use.

    `bert_tf.pretraining_data.graph_draws.GraphArrays` has the same in TensorFlow.
    """

    constant = staticmethod(np.asarray)
    arange = staticmethod(np.arange)
    full_like = staticmethod(np.full_like)
    zeros_like = staticmethod(np.zeros_like)
    size = staticmethod(len)
    copy = staticmethod(np.copy)
    take = staticmethod(np.take)
    take_clipped = staticmethod(functools.partial(np.take, mode="clip"))
    take_along = staticmethod(functools.partial(np.take_along_axis, axis=1))
    where = staticmethod(np.where)
    flat_nonzero = staticmethod(np.flatnonzero)
    minimum = staticmethod(np.minimum)
    maximum = staticmethod(np.maximum)
    min = staticmethod(np.min)
    max = staticmethod(np.max)
    sum = staticmethod(np.sum)
    cumsum = staticmethod(np.cumsum)
    cumprod = staticmethod(np.cumprod)
    clip = staticmethod(np.clip)
    round = staticmethod(np.rint)
    argmax = staticmethod(np.argmax)
    argsort = staticmethod(np.argsort)
    search = staticmethod(np.searchsorted)
    concat = staticmethod(np.concatenate)
    stack = staticmethod(np.stack)
    pad = staticmethod(np.pad)
    repeat = staticmethod(np.repeat)
    reshape = staticmethod(np.reshape)

    @staticmethod
    def cast(values: np.ndarray, dtype: str) -> np.ndarray:
        """Returns the values in another type."""
        return values.astype(dtype, copy=False)

    @staticmethod
    def as_flags(values: np.ndarray) -> np.ndarray:
        """Returns booleans as integers, the smallest that records are written from."""
        return values.view(np.uint8)

    @staticmethod
    def count(values: np.ndarray, size: int) -> np.ndarray:
        """Returns how often each number below `size` occurs: int64 [size]."""
        return np.bincount(values, minlength=size)

    @staticmethod
    def put(values: np.ndarray, indices: np.ndarray, new: Any) -> np.ndarray:
        """Returns values with others at indices of the flat array; may change them."""
        np.put(values, indices, new)
        return values

    @staticmethod
    def put_along(order: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Returns [B, S]: values in the order before they were sorted by `order`."""
        result = np.empty_like(values)
        np.put_along_axis(result, order, values, axis=1)
        return result

    @staticmethod
    def nth_smallest(keys: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Returns [B]: the n-th smallest key of each row; n counts from 1."""
        most = min(int(n.max()), keys.shape[1])
        smallest = np.sort(np.partition(keys, most - 1, axis=1)[:, :most], axis=1)
        return smallest[np.arange(len(keys)), np.minimum(n, most) - 1]

    @staticmethod
    def scan(
        step: Callable[..., Any], state: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Calls step(state, column) -> (state, flags) for the columns of [B, S].

        Returns:
            bool [B, S], the flags. They must be False where the state is 0.
        """
        flags = np.zeros(columns.shape, bool)
        for number in range(columns.shape[1]):
            state, flags[:, number] = step(state, columns[:, number])
            if not state.any():
                break
        return flags

    @staticmethod
    def attempts(
        step: Callable[..., Any], state: Sequence[np.ndarray], draws: Any, most: int
    ) -> Sequence[np.ndarray]:
        """Repeats state = step(draws, *state) until its last array is 0."""
        for _ in range(most):
            if not state[-1].any():
                break
            state = step(draws, *state)
        return state

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


class _Rows:
    """Random numbers for the rows of an array, made from `words`."""

    words: Callable[[int], np.ndarray]

    def uniform_rows(self, num_rows: int, length: int) -> np.ndarray:
        """Returns numbers in [0, 1): float64 [num_rows, length]."""
        return _as_uniform(self.words(num_rows * length)).reshape(-1, length)

    def shuffle_keys(self, is_item: np.ndarray) -> np.ndarray:
        """Returns sort keys [B, S] without ties: random for items, else the maximum.

        They are uint32 with at least 20 random bits, or uint64 for long rows.
        """
        num_rows, length = is_item.shape
        is_short = length.bit_length() <= MAX_POSITION_BITS
        dtype: np.dtype[Any] = np.dtype(np.uint32 if is_short else np.uint64)
        words = self.words(num_rows * -(-length * dtype.itemsize // 8))
        keys = words.view(dtype).reshape(num_rows, -1)[:, :length]
        bits = dtype.type(length.bit_length())
        keys = (keys >> bits << bits) | np.arange(length, dtype=dtype)
        np.copyto(keys, np.iinfo(dtype).max, where=~is_item)
        return keys


class Draws(_Rows):
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
        return _as_uniform(self.words(count))

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
            rows: int64 [N], rows of the positions in an array [B, S].
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


class RowDraws(_Rows):
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
        numbers = np.arange(count // max(len(self._keys), 1), dtype=np.uint64)
        with np.errstate(over="ignore"):
            return ordering.mix((self._keys[:, None] + numbers).ravel())

    def uniform_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Returns a number in [0, 1) for each position, as `Draws.uniform_at`."""
        self._keys = ordering.mix(self._keys)
        with np.errstate(over="ignore"):
            words = ordering.mix(self._keys[rows] + columns.astype(np.uint64))
        return _as_uniform(words)


def _as_uniform(words):
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
