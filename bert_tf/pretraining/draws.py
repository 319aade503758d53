"""Random numbers for whole arrays, the same under every version of NumPy.

NumPy promises the raw words of its bit generators, and not what its distributions
make of them; so only raw words are taken from it.
"""

import numpy as np

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


def _bit_count(words):
    """Returns the ones in each word. Source: Hacker's Delight, figure 5-2."""
    words = words - ((words >> np.uint64(1)) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    words = (words & pairs) + ((words >> np.uint64(2)) & pairs)
    words = (words + (words >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((words * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)
