"""Writes TFRecord files complete or not at all, and reads records by index."""

import array
import bisect
import collections
import contextlib
import itertools
import os
import threading
import weakref
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import files
from bert_tf.data import encoding as data_encoding
from bert_tf.data import record_index
from bert_tf.data import schema as schema_module

# The usual limit of a process is 1,024.
_FILES_KEPT_OPEN = 256


class Writer:
    """Writes one TFRecord file and, beside it, its side file.

    Use it as a context manager. The file appears when the block ends, or not at all if
    the block raises.

        with tfrecord.Writer(path, schema, metadata={...}) as writer:
            writer.write(columns)

    Args:
        path: the file.
        schema: its columns.
        metadata: JSON values that say how the records were created, such as
            `vocab_fingerprint`. `RecordFiles.metadata` returns them. The attribute of
            this name may be extended until the block ends.

    Raises:
        OSError: the file cannot be written.
    """

    _file: Any

    def __init__(
        self,
        path: str | os.PathLike,
        schema: schema_module.Schema,
        *,
        metadata: Mapping[str, Any] | None = None,
    ):
        self.path = os.fspath(path)
        self._schema = schema
        self.metadata = dict(metadata or {})
        # Of each record, which is a protocol buffer and therefore below 2 GiB.
        self._sizes = array.array("I")
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Writer":
        self._file = self._stack.enter_context(
            files.complete_or_absent(self.path, "wb")
        )
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if kind is None:
            # An old side file must never be beside new records.
            record_index.remove(self.path)
        self._stack.__exit__(kind, error, traceback)
        if kind is None:
            sizes = np.array(self._sizes)
            record_index.save(self.path, sizes, self._schema, self.metadata)

    def write(self, columns: Mapping[str, np.ndarray]) -> None:
        """Appends rows: an array [B] or [B, length] for each column of the schema.

        Raises:
            ValueError: an array does not match the schema.
            OSError: the file cannot be written.
        """
        data, sizes = data_encoding.framed_records(self._schema, columns)
        self.append(data, sizes.tolist())

    def append(self, framed: bytes, sizes: Sequence[int]) -> None:
        """Appends records that are framed already, and have these sizes, unchanged."""
        self._file.write(framed)
        self._sizes.extend(sizes)


class RecordFiles:
    """The records of several TFRecord files as one list.

    Args:
        paths: the files, in order. A file without a side file is scanned once to find
            its records.

    Attributes:
        paths: the files.
        num_records: number of records of all files.
        num_bytes: size of all files.
        is_remote: whether a file is on a remote file system.
        schema: the columns, from the side file or else from the first record.
        metadata: what the writer recorded; empty without a side file.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is truncated or damaged, the files have different columns or
            vocabularies, or there are no records.
    """

    def __init__(self, paths: Sequence[str | os.PathLike]):
        self.paths = [os.fspath(path) for path in paths]
        indices = files.map_paths(record_index.load_or_scan, self.paths)
        self._offsets = [index.offsets for index in indices]
        counts = [len(offsets) - 1 for offsets in self._offsets]
        self._ends = np.cumsum(counts, dtype=np.int64)  # Of each file, in records.
        self._starts = self._ends - counts
        self.num_records = int(self._ends[-1]) if counts else 0
        if not self.num_records:
            raise ValueError(f"There are no records in {', '.join(self.paths)}.")
        self.num_bytes = sum(int(offsets[-1]) for offsets in self._offsets)
        self.is_remote = any(map(files.is_remote, self.paths))
        self._opened: collections.OrderedDict[str, Any] = collections.OrderedDict()
        self._lock = threading.Lock()
        weakref.finalize(self, _close_all, self._opened)
        self.schema, self.metadata = self._agreed(indices)

    def read(self, indices: npt.ArrayLike) -> list[bytes]:
        """Returns serialized records.

        Args:
            indices: int [B], from 0 to num_records - 1, in any order.

        Raises:
            ValueError: a record is damaged; the message has file and byte.
            OSError: a file cannot be read.
        """
        rows = np.asarray(indices, np.int64)
        return self.payloads(self.read_framed(rows), rows)

    def read_framed(self, indices: np.ndarray) -> list[bytes]:
        """Returns records with header and footer, not verified; see `payloads`.

        Records of a remote file that follow each other are one request. `remote_blocks`
        also reads ahead.
        """
        which = np.searchsorted(self._ends, indices, side="right")
        if self.is_remote:
            return self._read_runs(which, indices)
        with self._lock:
            return [
                self._read_framed(file, int(index))
                for file, index in zip(which, indices, strict=True)
            ]

    def paths_of(self, rows: range) -> list[str]:
        """Returns the files that contain rows which follow each other."""
        first, last = np.searchsorted(self._ends, [rows[0], rows[-1]], side="right")
        return self.paths[first : last + 1]

    def payloads(self, framed: Sequence[bytes], indices: np.ndarray) -> list[bytes]:
        """Returns the records that `read_framed` returned, after verifying them.

        Raises:
            ValueError: a record is damaged; the message has file and byte.
        """
        records = []
        for index, data in zip(indices.tolist(), framed, strict=True):
            record = data_encoding.payload(data)
            if record is None:
                path, offset = self._place(index)
                raise ValueError(
                    f"{path}: the record at byte {offset} is damaged (its checksum "
                    "differs); create or copy the file again."
                )
            records.append(record)
        return records

    def decoded(self, index: int) -> dict[str, np.ndarray]:
        """Returns the values of one record: int64 or float32 [N] by column name.

        Raises:
            ValueError: the record is damaged, or is not an Example of numbers.
            OSError: the file cannot be read.
        """
        [record] = self.read([index])
        return self.decode(record, index)

    def decode(self, record: bytes, index: int) -> dict[str, np.ndarray]:
        """Returns the values of a record that was read; see `decoded`."""
        try:
            return data_encoding.decode(record)
        except ValueError as error:
            path, offset = self._place(index)
            raise ValueError(
                f"{path}: the record at byte {offset} is {error}."
            ) from None

    def place(self, index: int) -> str:
        """Returns "file: record 3 (at byte 200)" for messages; records count from 1."""
        path, offset = self._place(index)
        number = index + 1 - int(self._starts[bisect.bisect_right(self._ends, index)])
        return f"{path}: record {number:,} (at byte {offset:,})"

    def _agreed(self, indices):
        """Returns schema and metadata after checking that all files agree."""
        described = {}
        for file, index in enumerate(indices):
            if len(index.offsets) > 1:
                first = int(self._starts[file])
                schema = index.schema or schema_module.infer(self.decoded(first))
                described[self.paths[file]] = (schema, index.metadata)
        (path, (schema, metadata)), *others = described.items()
        for other, (other_schema, other_metadata) in others:
            if set(other_schema.columns) != set(schema.columns):
                raise ValueError(
                    f"{other} has the columns {other_schema}, but {path} has {schema}."
                )
            fingerprint = metadata.get("vocab_fingerprint")
            if other_metadata.get("vocab_fingerprint") != fingerprint:
                raise ValueError(
                    f"{other} was written with a different vocabulary than {path}, or "
                    "with an unknown one; create both with the same vocabulary."
                )
        casings = {
            metadata["do_lower_case"]: path
            for path, (_, metadata) in described.items()
            if metadata.get("do_lower_case") is not None
        }
        if len(casings) > 1:
            (known, path), (other_casing, other), *_ = casings.items()
            raise ValueError(
                f"{other} was written with --do_lower_case={other_casing}, but {path} "
                f"with {known}; create both with the same casing."
            )
        for casing in casings:
            metadata = {**metadata, "do_lower_case": casing}
        return schema, metadata

    def _place(self, index):
        file = bisect.bisect_right(self._ends, index)
        return self.paths[file], self._bounds(file, index, 1)[0]

    def _read_framed(self, file, index):
        start, end = self._bounds(file, index, 1)
        return os.pread(self._open(self.paths[file]).fileno(), end - start, start)

    def _read_runs(self, which, indices):
        """Returns framed records; those that follow each other are read together."""
        is_next = (np.diff(indices) == 1) & (np.diff(which) == 0)
        starts = [0, *(np.flatnonzero(~is_next) + 1).tolist(), len(indices)]
        runs = [
            (int(which[start]), int(indices[start]), end - start)
            for start, end in itertools.pairwise(starts)
            if end > start
        ]
        bounds = [self._bounds(*run) for run in runs]
        blocks = files.map_paths(
            files.read_range,
            [self.paths[file] for file, _, _ in runs],
            [places[0] for places in bounds],
            [places[-1] - places[0] for places in bounds],
        )
        return [
            block[start - places[0] : end - places[0]]
            for places, block in zip(bounds, blocks, strict=True)
            for start, end in itertools.pairwise(places)
        ]

    def _bounds(self, file, index, count):
        """Returns the bytes at which records that follow each other start and end."""
        place = index - int(self._starts[file])
        return self._offsets[file][place : place + count + 1].tolist()

    def _open(self, path):
        if path not in self._opened:
            if len(self._opened) >= _FILES_KEPT_OPEN:
                self._opened.popitem(last=False)[1].close()
            self._opened[path] = files.open_file(path, "rb")
        return self._opened[path]


def _close_all(opened):
    while opened:
        opened.popitem()[1].close()
