"""How many examples each pool of a text has, which a resumed run has to know.

The number depends on the pairs that were drawn, so it is only known once a pool was
sampled. A run records the numbers in its folder. They only save time: numbers that are
missing are computed again.
"""

import json
import os
import threading

from bert_tf import files
from bert_tf.pretraining_data import graph_pools

FILE = "text_examples.json"
_ADVICE = "remove it; it will be computed again"


class RowCounts:
    """The number of rows of each pool of a text, from some pool on.

    Args:
        pools: the pools.
        key: identifies the text, the settings and the seed. Recorded numbers with a
            different key are not used.
        first: number of the first pool.
        folder: of the run that records the numbers; None: they are not recorded.
        is_written: False: the folder is only read, as on all workers but the chief.

    Raises:
        OSError: the recorded numbers cannot be read.
        ValueError: the file with the recorded numbers is damaged.
    """

    def __init__(
        self,
        pools: graph_pools.TextPools,
        key: str,
        *,
        first: int = 0,
        folder: str | None = None,
        is_written: bool = True,
    ):
        self.first = first
        self._pools = pools
        self._key = key
        self._path = None if folder is None else os.path.join(folder, FILE)
        self._is_written = is_written
        self._lock = threading.Lock()
        self._counts = self._read()

    def find(self, row: int) -> tuple[int, int]:
        """Returns the number of the pool with a row, and the index of its first row.

        Args:
            row: index of the row in all pools.
        """
        rows_before, index = 0, 0
        while rows_before < row and rows_before + self._count(index) <= row:
            rows_before += self._count(index)
            index += 1
        return self.first + index, rows_before

    def total(self, enough: int | None = None) -> int:
        """Returns the number of rows of an epoch.

        Args:
            enough: a number that suffices; later pools are then not sampled.
        """
        total = 0
        for index in range(self._pools.num_pools):
            if enough is not None and total >= enough:
                break
            total += self._count(index)
        return total

    def record(self, number: int, count: int) -> None:
        """Records the number of rows of a pool that was sampled.

        Args:
            number: number of the pool.
            count: its rows.

        Raises:
            OSError: the file cannot be written.
        """
        with self._lock:
            if number - self.first != len(self._counts):
                return
            self._counts.append(count)
            if self._path is None or not self._is_written:
                return
            with files.complete_or_absent(self._path) as file:
                json.dump({"key": self._key, "num_examples": self._counts}, file)

    def _count(self, index):
        if index == len(self._counts):
            self.record(self.first + index, self._pools.count(self.first + index))
        return self._counts[index]

    def _read(self):
        if self._path is None or not files.exists(self._path):
            return []
        recorded = files.read_json(self._path, advice=_ADVICE)
        counts = recorded.get("num_examples")
        if not (isinstance(counts, list) and all(type(n) is int for n in counts)):
            raise ValueError(
                f"{self._path} has an unexpected value of num_examples: "
                f"{counts!r:.80}; {_ADVICE}."
            )
        return counts if recorded.get("key") == self._key else []
