"""Random numbers that no version of NumPy changes.

NumPy guarantees the raw output of its bit generators but not that of its distributions.
So only raw words come from NumPy, and the distributions are computed here.
"""

from typing import Any

import numpy as np

from bert_tf.pretraining_data import numpy_arrays

# 32-bit keys take half the time of longer ones. If the position uses at most 12 of the
# bits, the random remainders are rarely equal; ties go to the lower position.
_MAX_POSITION_BITS = 12


class Draws:
    """A stream of random numbers, determined by the integers of its seed."""

    def __init__(self, *seed: int):
        self._bits = np.random.SFC64(np.random.SeedSequence(seed))

    def words(self, count: int) -> np.ndarray:
        """Returns random words: uint64 [count]."""
        return self._bits.random_raw(count)

    def uniform(self, count: int) -> np.ndarray:
        """Returns numbers in [0, 1): float64 [count]."""
        return numpy_arrays.as_uniform(self.words(count))

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
            keys = numpy_arrays.halves(keys)
        return _shuffle_keys(numpy_arrays, keys, is_item)

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
        arrays: the module `numpy_arrays` or `graph_arrays`.
        keys: uint64 [B], from `graph_pools.row_keys`. The attribute has those of the
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
