"""The order in which training reads rows, as a function of position and seed.

Rows are sorted by a hash of (seed, epoch, row). An epoch of hundreds of millions of
rows is never sorted as a whole: it is cut into parts, and at most four are in memory.
"""

import functools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

# A part of an epoch has up to about this many rows: 64 MB while it is sorted.
_ROWS_PER_PART = 1 << 22
_PARTS_KEPT = 4
# Hashed at a time. The temporary arrays then fit into a processor's cache.
_ROWS_PER_BLOCK = 1 << 16


class Order:
    """An endless order of rows: one epoch after another, each permuted differently.

    Args:
        num_rows: number of rows in an epoch.
        seed: determines the order.
        window: 0: all rows are shuffled together. 1: they keep their order. More: this
            many rows that follow each other stay together, in a window.
        windows_per_pool: number of windows whose rows are shuffled together.
    """

    def __init__(
        self, num_rows: int, *, seed: int, window: int, windows_per_pool: int = 1
    ):
        self.num_rows = num_rows
        self.window = window
        self._seed = seed
        if window > 1:
            self._num_parts = -(-num_rows // (window * windows_per_pool))
        else:
            # A power of two, because the highest bits of a hash choose the part.
            self._num_parts = 1 << (max(num_rows - 1, 1) // _ROWS_PER_PART).bit_length()
        self.rows_per_part = -(-num_rows // self._num_parts)
        self._windows_per_pool = windows_per_pool
        # A batch may span two epochs, so keep both.
        self._cut = functools.lru_cache(maxsize=2)(self._cut_epoch)
        self._part = functools.lru_cache(maxsize=_PARTS_KEPT)(
            lambda epoch, number: self._cut(epoch).sorted_rows(number)
        )
        self._lock = threading.Lock()  # Two batches at once sort a part only once.

    def indices(self, position: int, count: int) -> np.ndarray:
        """Returns the rows at `count` positions from `position` on: int64 [count]."""
        if self.window == 1:
            return (position + np.arange(count, dtype=np.int64)) % self.num_rows
        with self._lock:
            pieces = [
                self._part(epoch, part)[start:stop]
                for epoch, part, start, stop in self._places(position, count)
            ]
        return np.concatenate([*pieces, np.zeros(0, np.int64)])

    def ranges(self, position: int, count: int) -> list[range]:
        """Returns the ranges of rows that contain those of `indices`.

        An order without windows has none; the list is then empty.
        """
        if self.window <= 1:
            return []
        return [
            range(first, min(first + self.window, self.num_rows))
            for epoch, part, _, _ in self._places(position, count)
            for first in (self._cut(epoch).windows(part) * self.window).tolist()
        ]

    def _cut_epoch(self, epoch):
        key = mix(mix(np.uint64(self._seed % 2**64)) + np.uint64(epoch))
        if self.window > 1:
            return _Windows(key, self.num_rows, self.window, self._windows_per_pool)
        return _HashRanges(key, self.num_rows, self._num_parts)

    def _places(self, position: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """Yields (epoch, part, first place, place after the last) of positions."""
        while count > 0:
            epoch, place = divmod(position, self.num_rows)
            ends = self._cut(epoch).ends
            part = int(np.searchsorted(ends, place, side="right"))
            start = place - (int(ends[part - 1]) if part else 0)
            here = min(count, int(ends[part]) - place)
            yield epoch, part, start, start + here
            position, count = position + here, count - here


class _HashRanges:
    """An epoch whose parts are ranges of the hash, so that they join up sorted.

    Finding the rows of a part takes a pass over the hashes of all rows: about 40 ns per
    row, or 12 seconds for 300 million rows. A part lasts for thousands of batches.
    """

    def __init__(self, key, num_rows, num_parts):
        self._key, self._num_rows = key, num_rows
        self._bits = num_parts.bit_length() - 1
        counts: Any = [num_rows]
        if num_parts > 1:
            parts = (self._parts_of(hashes) for _, hashes in self._hashes())
            counts = sum(np.bincount(one, minlength=num_parts) for one in parts)
        self.ends = np.cumsum(counts)  # Rows up to the end of each part.

    def sorted_rows(self, part):
        """Returns the rows of a part in order: int64."""
        rows, hashes = [], []
        for first, block in self._hashes():
            places = np.arange(len(block))
            if self._bits:
                places = np.flatnonzero(self._parts_of(block) == part)
            rows.append(first + places)
            hashes.append(block[places])
        order = np.argsort(np.concatenate(hashes), kind="stable")
        return np.concatenate(rows)[order]

    def _hashes(self):
        for first in range(0, self._num_rows, _ROWS_PER_BLOCK):
            rows = np.arange(first, min(first + _ROWS_PER_BLOCK, self._num_rows))
            yield first, mix(self._key + rows.astype(np.uint64))

    def _parts_of(self, hashes):
        return (hashes >> np.uint64(64 - self._bits)).astype(np.int64)


class _Windows:
    """An epoch whose windows are permuted; its parts are pools of windows."""

    def __init__(self, key, num_rows, window, windows_per_pool):
        self._key, self._num_rows, self._window = key, num_rows, window
        count = -(-num_rows // window)
        self._permuted = np.argsort(mix(~key + np.arange(count, dtype=np.uint64)))
        self._pools = np.arange(0, count, windows_per_pool)
        sizes = np.where(
            self._permuted == count - 1, num_rows - (count - 1) * window, window
        )
        self.ends = np.cumsum(np.add.reduceat(sizes, self._pools))
        self._windows_per_pool = windows_per_pool

    def windows(self, part):
        first = self._pools[part]
        return self._permuted[first : first + self._windows_per_pool]

    def sorted_rows(self, part):
        rows = self.windows(part)[:, None] * self._window + np.arange(self._window)
        rows = rows[rows < self._num_rows]
        return rows[np.argsort(mix(self._key + rows.astype(np.uint64)), kind="stable")]


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
