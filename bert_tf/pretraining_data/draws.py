"""Random numbers for whole arrays, the same under every version of NumPy.

NumPy promises the raw words of its bit generators, and not what its distributions
make of them; so only raw words are taken from it.
"""

import numpy as np

from bert_tf.data import ordering

_TWO_TO_THE_MINUS_53 = 2.0**-53


class Draws:
    """A stream of random numbers.

    Args:
        seed: integers that fix the stream.
    """

    def __init__(self, *seed: int):
        self._bits = np.random.SFC64(np.random.SeedSequence(seed))

    def words(self, count: int) -> np.ndarray:
        """Returns random words: uint64 [count]."""
        return self._bits.random_raw(count)

    def uniform(self, count: int) -> np.ndarray:
        """Returns numbers in [0, 1): float64 [count]."""
        return (self.words(count) >> np.uint64(11)) * _TWO_TO_THE_MINUS_53

    def below(self, limits: np.ndarray) -> np.ndarray:
        """Returns whole numbers from 0 to below each of `limits`: int64 [B]."""
        # 53 random bits against limits below 2**31: the bias is under 2**-22.
        return (self.uniform(len(limits)) * limits).astype(np.int64)

    def uniform_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Returns numbers in [0, 1), one for each place: float64 [N].

        Args:
            rows, columns: int64 [N], the places in an array [B, S].
        """
        return self.uniform(len(rows))

    def heads(self, counts: np.ndarray) -> np.ndarray:
        """Returns how many of `counts` fair coins show heads: int64 [B]."""
        result = np.zeros(len(counts), np.int64)
        for done in range(0, int(counts.max(initial=0)), 64):
            tossing = np.flatnonzero(counts > done)
            num_bits = np.minimum(counts[tossing] - done, 64).astype(np.uint64)
            words = self.words(len(tossing)) >> (np.uint64(64) - num_bits)
            result[tossing] += _bit_count(words)
        return result

    def permutation(self, count: int) -> np.ndarray:
        """Returns the numbers 0 to count - 1 in random order: int64 [count]."""
        return np.argsort(self.words(count), kind="stable")


class RowDraws:
    """Random numbers for the rows of an array, each row a function of its key alone.

    What a row gets does not depend on which rows it stands between. Of equal keys the
    first draws are equal, and so are the second ones, and so on.

    Args:
        keys: uint64 [B], as `row_keys` returns them.
    """

    def __init__(self, keys: np.ndarray):
        self._keys = keys

    def words(self, count: int) -> np.ndarray:
        """Returns random words: uint64 [count], equally many a row, row by row."""
        self._keys = ordering.mix(self._keys)
        places = np.arange(count // max(len(self._keys), 1), dtype=np.uint64)
        with np.errstate(over="ignore"):
            return ordering.mix((self._keys[:, None] + places).ravel())

    def uniform_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Returns numbers in [0, 1), as `Draws.uniform_at` does."""
        self._keys = ordering.mix(self._keys)
        with np.errstate(over="ignore"):
            words = ordering.mix(self._keys[rows] + columns.astype(np.uint64))
        return (words >> np.uint64(11)) * _TWO_TO_THE_MINUS_53


def row_keys(seed: int, step: int, rows: np.ndarray) -> np.ndarray:
    """Returns a key for each row of a step: uint64 [B].

    Args:
        seed: of the run.
        step: number of the step.
        rows: int [B], numbers of the rows in the step's global batch.
    """
    # Not the order's key of (seed, epoch, row), which is made in the same way.
    key = ordering.mix(~np.uint64(seed % 2**64))
    with np.errstate(over="ignore"):
        key = ordering.mix(key + np.uint64(step))
        return ordering.mix(key + np.asarray(rows).astype(np.uint64))


def _bit_count(words):
    """Returns the ones in each word. Source: Hacker's Delight, figure 5-2."""
    words = words - ((words >> np.uint64(1)) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    words = (words & pairs) + ((words >> np.uint64(2)) & pairs)
    words = (words + (words >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((words * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)
