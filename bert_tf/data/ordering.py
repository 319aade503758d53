"""The order in which training meets the rows, as a function of place and seed."""

import functools
import threading

import numpy as np


class Order:
    """The order of rows: epochs laid end to end, each permuted by (seed, epoch).

    Args:
        num_rows: rows of an epoch.
        seed: fixes the order.
        window: as `shuffle_buffer_size` of `training_batches`.
    """

    def __init__(self, num_rows: int, *, seed: int, window: int):
        self._num_rows = num_rows
        self._seed = seed
        self._window = window
        self._lock = threading.Lock()
        # A batch may reach over the end of an epoch, so two are kept.
        self._permutation = functools.lru_cache(maxsize=2)(self._compute)

    def indices(self, position: int, count: int) -> np.ndarray:
        """Returns the rows at `count` places of the endless order: int64 [count]."""
        positions = position + np.arange(count, dtype=np.int64)
        if self._window == 1:
            return positions % self._num_rows
        epochs, places = np.divmod(positions, self._num_rows)
        result = np.empty(count, np.int64)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            with self._lock:
                permutation = self._permutation(int(epoch))
            result[here] = permutation[places[here]]
        return result

    def _compute(self, epoch):
        key = _mix(_mix(np.uint64(self._seed % 2**64)) + np.uint64(epoch))
        rows = np.arange(self._num_rows, dtype=np.uint64)
        keys = _mix(key + rows)
        if self._window > 1:
            windows = _mix(~key + rows // np.uint64(self._window))
            return np.lexsort((keys, windows))
        return np.argsort(keys, kind="stable")


def _mix(values):
    """Returns a well-mixed one-to-one hash of uint64 values.

    NumPy's generators may draw other permutations in another version; this cannot.
    Source: the finalizer of splitmix64 (Steele, Lea, Flood 2014).
    """
    with np.errstate(over="ignore"):
        values = values + np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
