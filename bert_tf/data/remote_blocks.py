"""Reads records of remote files in blocks: in parallel, and before they are needed.

A request to an object store takes tens of milliseconds, however little it returns. One
request per record would therefore let training starve. Here a request returns thousands
of records that follow each other in a file. Training shuffles the records of 16 blocks
from random places together, and the next 16 blocks are read in the meantime.

The order of records is a function of the seed and the position alone, as it is for
local files. A resumed run reads only the blocks that it needs.
"""

import collections
import concurrent.futures
import logging
import threading
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.data import ordering

logger = logging.getLogger(__name__)

# Below the 4 MB that `command_line` sets as the size of TensorFlow's requests to gs://,
# because blocks differ in size.
BLOCK_BYTES = 3 << 20
BLOCKS_PER_POOL = 16
# Kept, and read ahead, where records are read in the order of the files.
_BLOCKS_KEPT = 8
_BLOCKS_AHEAD = 4


def order_of(record_files: Any, window: int) -> str | None:
    """Returns the name of the order of training, such as "16 blocks of 700".

    Local files have none, and the result is None. The arguments are
    `tfrecord.RecordFiles` and the `shuffle_buffer_size` of `batching.training_batches`.
    """
    if window or not record_files.is_remote:
        return None
    return f"{BLOCKS_PER_POOL} blocks of {_rows_per_block(record_files)}"


def _rows_per_block(record_files):
    return max(1, record_files.num_records * BLOCK_BYTES // record_files.num_bytes)


class BlockReader:
    """Reads records of remote `tfrecord.RecordFiles` by index."""

    def __init__(self, record_files: Any):
        self._files = record_files
        self._unchanged = files.Unchanged(record_files.paths)
        self.rows_per_block = _rows_per_block(record_files)
        self._lock = threading.Lock()
        # Framed records by rows, those needed least recently first.
        self._blocks: collections.OrderedDict[range, concurrent.futures.Future]
        self._blocks = collections.OrderedDict()
        self._max_rows = _BLOCKS_KEPT * self.rows_per_block
        self._threads = concurrent.futures.ThreadPoolExecutor(files.REQUESTS_AT_ONCE)

    def order(self, *, seed: int, window: int) -> ordering.Order:
        """See `batching.Source.order`; logs the order.

        With a window of 0, the records of 16 random blocks are shuffled together.
        """
        how, blocks_per_pool = "They keep their order.", 1
        if not window:
            how = f"Those of {BLOCKS_PER_POOL} random blocks are shuffled together."
            window, blocks_per_pool = max(self.rows_per_block, 2), BLOCKS_PER_POOL
        logger.info(
            "Examples in remote files (first %s) are read in blocks of about %d. %s",
            self._files.paths[0],
            self.rows_per_block,
            how,
        )
        return ordering.Order(
            self._files.num_records,
            seed=seed,
            window=window,
            windows_per_pool=blocks_per_pool,
        )

    def prefetch(self, ranges: list[range]) -> None:
        """Starts to read rows that will be needed soon.

        Up to one and a half times as many rows are kept.
        """
        num_rows = sum(map(len, ranges))
        with self._lock:
            self._max_rows = max(self._max_rows, num_rows + num_rows // 2)
            for rows in ranges:
                for first in range(rows.start, rows.stop, self.rows_per_block):
                    self._start(self._block_of(first))
            self._drop_oldest()

    def read(self, indices: np.ndarray) -> list[bytes]:
        """Returns records, as `RecordFiles.read` does."""
        indices = np.asarray(indices, np.int64)
        blocks = [self._block_of(row) for row in indices.tolist()]
        with self._lock:
            framed = {rows: self._needed(rows) for rows in dict.fromkeys(blocks)}
            self._drop_oldest()
        for rows, result in framed.items():
            if result.exception() is not None:
                with self._lock:  # Another attempt may succeed.
                    self._blocks.pop(rows, None)
        pieces = [
            framed[rows].result()[row - rows.start]
            for rows, row in zip(blocks, indices.tolist(), strict=True)
        ]
        return self._files.payloads(pieces, indices)

    def _block_of(self, row):
        """Returns the rows of the block that contains a row."""
        first = row // self.rows_per_block * self.rows_per_block
        return range(first, min(first + self.rows_per_block, self._files.num_records))

    def _needed(self, rows):
        """Returns a block, which is started if it was not prefetched."""
        size, end = self.rows_per_block, self._files.num_records
        before = range(rows.start - size, rows.start)
        if rows not in self._blocks and (not rows.start or before in self._blocks):
            last = min(rows.stop + _BLOCKS_AHEAD * size, end)
            for first in range(rows.stop, last, size):
                self._start(self._block_of(first))
        return self._start(rows)

    def _start(self, rows):
        if rows not in self._blocks:
            self._blocks[rows] = self._threads.submit(self._read_block, rows)
        self._blocks.move_to_end(rows)
        return self._blocks[rows]

    def _read_block(self, rows):
        """Returns the framed records of a block, from files that have not changed.

        Other records of the same size would be read without an error.
        """
        framed = self._files.read_framed(np.arange(rows.start, rows.stop))
        self._unchanged.check(self._files.paths_of(rows))
        return framed

    def _drop_oldest(self):
        held = sum(map(len, self._blocks))
        while held > self._max_rows and len(self._blocks) > 1:
            held -= len(self._blocks.popitem(last=False)[0])
