"""The functions on NumPy's arrays that `pairs` and `rows` take as `arrays`, and draws.

`graph_arrays` has the same functions for TensorFlow.

No version of NumPy changes the draws. NumPy guarantees the raw output of its bit
generators but not that of its distributions. So only raw words come from NumPy, and the
distributions are computed here.
"""

import functools
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.data import ordering

TWO_TO_THE_MINUS_53 = 2.0**-53
# Passes that advance together; bounds the memory for many tiny documents.
_MAX_PASSES_AT_A_TIME = 1 << 17
# 32-bit keys take half the time of longer ones. If the position uses at most 12 of the
# bits, the random remainders are rarely equal; ties go to the lower position.
_MAX_POSITION_BITS = 12


amax = np.amax
amin = np.amin
arange = np.arange
argmax = np.argmax
argsort = np.argsort
clip = np.clip
concatenate = np.concatenate
copy = np.copy
count_nonzero = np.count_nonzero
cumprod = np.cumprod
cumsum = np.cumsum
full_like = np.full_like
maximum = np.maximum
minimum = np.minimum
nonzero = np.nonzero
pad = np.pad
repeat = np.repeat
reshape = np.reshape
rint = np.rint
searchsorted = np.searchsorted
sort = np.sort
stack = np.stack
take = np.take
where = np.where
zeros_like = np.zeros_like
constant = np.asarray
size = len
take_along = functools.partial(np.take_along_axis, axis=1)
mix = ordering.mix


def cast(values: np.ndarray, dtype: str) -> np.ndarray:
    """Returns the values in another type."""
    return values.astype(dtype, copy=False)


def as_flags(values: np.ndarray) -> np.ndarray:
    """Returns booleans as integers, the smallest that records are written from."""
    return values.view(np.uint8)


def as_uniform(words: np.ndarray) -> np.ndarray:
    """Returns random words, uint64, as numbers in [0, 1), float64."""
    return (words >> np.uint64(11)) * TWO_TO_THE_MINUS_53


def halves(words: np.ndarray) -> np.ndarray:
    """Returns words, uint64 [B, N], as uint32 [B, 2 N]."""
    return words.view(np.uint32)


def count(values: np.ndarray, limit: int) -> np.ndarray:
    """Returns how often each number below `limit` occurs: int64 [limit]."""
    return np.bincount(values, minlength=limit)


def put(values: np.ndarray, indices: np.ndarray, new: Any) -> np.ndarray:
    """Returns values with others at indices of the flat array; may change them."""
    np.put(values, indices, new)
    return values


def put_along(order: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns [B, S]: values in the order before they were sorted by `order`."""
    result = np.empty_like(values)
    np.put_along_axis(result, order, values, axis=1)
    return result


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


def attempts(
    step: Callable[..., Any], state: Sequence[np.ndarray], draws: Any, most: int
) -> Sequence[np.ndarray]:
    """Repeats state = step(draws, *state) until its last array is 0."""
    for _ in range(most):
        if not state[-1].any():
            break
        state = step(draws, *state)
    return state


def passes(document_starts: np.ndarray, dupe_factor: int) -> Iterator[np.ndarray]:
    """Yields arrays of document indices, each `dupe_factor` times in total."""
    documents = np.arange(len(document_starts) - 1)
    at_a_time = max(1, _MAX_PASSES_AT_A_TIME // len(documents))
    for done in range(0, dupe_factor, at_a_time):
        yield np.tile(documents, min(at_a_time, dupe_factor - done))


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
    """A stream of random numbers, determined by the integers of its seed."""

    def __init__(self, *seed: int):
        self._bits = np.random.SFC64(np.random.SeedSequence(seed))

    def words(self, count: int) -> np.ndarray:
        """Returns random words: uint64 [count]."""
        return self._bits.random_raw(count)

    def uniform(self, count: int) -> np.ndarray:
        """Returns numbers in [0, 1): float64 [count]."""
        return as_uniform(self.words(count))

    def part(self, number: int) -> "Draws":
        """Returns the stream for an iteration of a loop: NumPy's stream goes on."""
        return self

    def below(self, limits: np.ndarray) -> np.ndarray:
        """Returns an integer from 0 to limit - 1 for each of `limits`: int64 [B]."""
        # 53 random bits against limits below 2**31: the bias is under 2**-22.
        return (self.uniform(len(limits)) * limits).astype(np.int64)

    def uniform_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Returns a number in [0, 1) for each of N positions: float64 [N]."""
        return self.uniform(len(rows))

    def uniform_rows(self, num_rows: int, length: int) -> np.ndarray:
        """Returns numbers in [0, 1): float64 [num_rows, length]."""
        return self.uniform(num_rows * length).reshape(-1, length)

    def shuffle_keys(self, is_item: np.ndarray) -> np.ndarray:
        """Returns sort keys [B, S] without ties: random for items, else the maximum.

        They are uint32 with at least 20 random bits, or uint64 for long rows.
        """
        num_rows, size = len(is_item), _words_of_keys(is_item.shape[1])
        keys = self.words(num_rows * size).reshape(num_rows, size)
        if _has_short_keys(is_item.shape[1]):
            keys = halves(keys)
        return _shuffle_keys(np, keys, is_item)

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
        arrays: `graph_arrays`, or this module in the test that compares the two.
        keys: uint64 [B], from `graph_arrays.row_keys`. The attribute has those of the
            next draws.
    """

    def __init__(self, arrays: Any, keys: Any):
        self.arrays = arrays
        self.keys = keys

    def uniform_rows(self, num_rows: Any, length: int) -> Any:
        """Returns numbers in [0, 1): float64 [B, length]."""
        return self.arrays.as_uniform(self._words(length))

    def uniform_at(self, rows: Any, columns: Any) -> Any:
        """Returns a number in [0, 1) for each position, as `Draws.uniform_at`."""
        arrays = self.arrays
        self.keys = arrays.mix(self.keys)
        keys = arrays.take(self.keys, rows) + arrays.cast(columns, "uint64")
        return arrays.as_uniform(arrays.mix(keys))

    def shuffle_keys(self, is_item: Any) -> Any:
        """Returns sort keys [B, S], as `Draws.shuffle_keys`."""
        keys = self._words(_words_of_keys(is_item.shape[1]))
        if _has_short_keys(is_item.shape[1]):
            keys = self.arrays.halves(keys)
        return _shuffle_keys(self.arrays, keys, is_item)

    def _words(self, length):
        """Returns random words: uint64 [B, length]."""
        arrays = self.arrays
        self.keys = arrays.mix(self.keys)
        numbers = arrays.cast(arrays.arange(length), "uint64")
        return arrays.mix(self.keys[:, None] + numbers)


def _has_short_keys(length):
    return length.bit_length() <= _MAX_POSITION_BITS


def _words_of_keys(length):
    """Returns the number of words for the keys of a row."""
    return -(-length // 2) if _has_short_keys(length) else length


def _shuffle_keys(arrays, keys, is_item):
    """Returns sort keys [B, S] from random ones, uint32 or uint64 [B, S or more]."""
    length = is_item.shape[1]
    dtype = np.uint32 if _has_short_keys(length) else np.uint64
    position_bits = dtype((1 << length.bit_length()) - 1)
    keys = (keys[:, :length] & ~position_bits) | np.arange(length, dtype=dtype)
    return arrays.where(is_item, keys, np.iinfo(dtype).max)
