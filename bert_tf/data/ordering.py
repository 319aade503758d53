"""The order in which training reads rows, as a function of position and seed."""

import functools
import threading
from typing import Any

import numpy as np

# Many enough that the rows of a batch have similar lengths, few enough that batches
# stay random.
BATCHES_PER_POOL = 50


class Order:
    """An endless order of rows: one epoch after another, each permuted differently.

    Args:
        num_rows: number of rows in an epoch.
        seed: determines the order.
        window: as `shuffle_buffer_size` of `batching.training_batches`.
    """

    def __init__(self, num_rows: int, *, seed: int, window: int):
        self._num_rows = num_rows
        self._seed = seed
        self._window = window
        self._lock = threading.Lock()
        # A batch may span two epochs, so keep both.
        self._permutation = functools.lru_cache(maxsize=2)(self._compute)

    def indices(self, position: int, count: int) -> np.ndarray:
        """Returns the rows at `count` positions from `position` on: int64 [count]."""
        positions = position + np.arange(count, dtype=np.int64)
        if self._window == 1:
            return positions % self._num_rows
        return _rows_at(positions, self._num_rows, self.epoch)

    def epoch(self, number: int) -> np.ndarray:
        """Returns the rows of an epoch in order: int64 [num_rows]."""
        with self._lock:
            return self._permutation(number)

    def keys(self, epoch: int, count: int) -> np.ndarray:
        """Returns pseudorandom uint64 [count], a function of (seed, epoch)."""
        return mix(self._key(epoch) + np.arange(count, dtype=np.uint64))

    def _key(self, epoch):
        return mix(mix(np.uint64(self._seed % 2**64)) + np.uint64(epoch))

    def _compute(self, epoch):
        keys = self.keys(epoch, self._num_rows)
        if self._window > 1:
            rows = np.arange(self._num_rows, dtype=np.uint64)
            windows = mix(~self._key(epoch) + rows // np.uint64(self._window))
            return np.lexsort((keys, windows))
        return np.argsort(keys, kind="stable")


class GroupedOrder:
    """An order in which rows of similar length share a batch, for less padding.

    Each epoch of a different order is cut into pools of 50 batches. The rows of a pool
    are sorted by length and cut into batches. Then the batches of the epoch are
    shuffled, so that short and long ones alternate.

    Args:
        lengths: int [N], the length of each row.
        order: the order that fills the pools; its window must not be 1.
        batch_size: number of rows in a batch.
    """

    def __init__(self, lengths: np.ndarray, *, order: Order, batch_size: int):
        self._lengths = np.asarray(lengths)
        self._order = order
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._epoch = functools.lru_cache(maxsize=2)(self._compute)

    def indices(self, position: int, count: int) -> np.ndarray:
        """Returns the rows at `count` positions from `position` on: int64 [count]."""
        positions = position + np.arange(count, dtype=np.int64)
        return _rows_at(positions, len(self._lengths), self.epoch)

    def epoch(self, number: int) -> np.ndarray:
        """Returns the rows of an epoch in order: int64 [N]."""
        with self._lock:
            return self._epoch(number)

    def _compute(self, epoch):
        rows, size = self._order.epoch(epoch), self._batch_size
        # The first rows complete the last batch of the previous epoch.
        first = -epoch * len(rows) % size
        num_batches = max(len(rows) - first, 0) // size
        last = first + num_batches * size
        batches = rows[first:last].copy()
        pool_size = BATCHES_PER_POOL * size
        for start in range(0, len(batches), pool_size):
            pool = batches[start : start + pool_size]
            sorted_places = np.argsort(self._lengths[pool], kind="stable")
            batches[start : start + pool_size] = pool[sorted_places]
        mixed = np.argsort(self._order.keys(epoch, num_batches), kind="stable")
        batches = batches.reshape(num_batches, size)[mixed].reshape(-1)
        return np.concatenate([rows[:first], batches, rows[last:]])


def _rows_at(positions, num_rows, epoch):
    """Returns the rows at positions in one epoch after another: int64, same shape."""
    epochs, places = np.divmod(positions, num_rows)
    result = np.empty(len(positions), np.int64)
    for number in np.unique(epochs):
        here = epochs == number
        result[here] = epoch(int(number))[places[here]]
    return result


def mix(values: Any) -> Any:
    """Returns a one-to-one hash of uint64 values, an array or a scalar.

    Permutations from NumPy's generators may change between versions; this cannot.
    Source: the finalizer of splitmix64 (Steele, Lea, Flood 2014).
    """
    with np.errstate(over="ignore"):
        values = values + np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
