"""The offsets of the records of a TFRecord file, from its side file or by a scan."""

import contextlib
import dataclasses
import io
import json
import os
import struct
import tempfile
import typing
import zipfile
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.data import encoding as data_encoding
from bert_tf.data import parallel_reads
from bert_tf.data import schema as schema_module

_SPOOL_BYTES = 1 << 20  # Kept in memory by each `Recorder`.
_SIZES_PER_BLOCK = 1 << 16
_BYTES_THAT_SHOW_KIND = 1 << 12


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordIndex:
    """What is known about a TFRecord file without reading its records."""

    # [R + 1]: starts of the records, then the file's size. int64; in a file below 4 GiB
    # uint32, because a corpus has hundreds of millions of records.
    offsets: np.ndarray
    schema: schema_module.Schema | None  # None without a side file.
    metadata: dict[str, Any]  # As the writer recorded it; empty without a side file.


class Recorder:
    """Collects the sizes of a file's records and writes its side file.

    Beyond one megabyte the sizes go to a temporary file, so memory does not grow with
    the number of records. As a context manager, it removes that file.

    Attributes:
        num_records: number of records so far.
    """

    def __init__(self) -> None:
        self.num_records = 0
        with contextlib.ExitStack() as stack:
            self._sizes = stack.enter_context(
                tempfile.SpooledTemporaryFile(_SPOOL_BYTES)
            )
            self._stack = stack.pop_all()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind, error, traceback) -> None:
        self._stack.close()

    def add(self, sizes: np.ndarray) -> None:
        """Adds the next records.

        Args:
            sizes: int64 [R], bytes of each record with header and footer.

        Raises:
            OSError: the temporary file cannot be written.
        """
        # uint32 suffices: a record is a protocol buffer, which is below 2 GiB.
        data = np.asarray(sizes).astype(np.uint32).tobytes()
        try:
            self._sizes.write(data)
        except OSError as error:
            raise OSError(f"{tempfile.gettempdir()}: {error.strerror}.") from None
        self.num_records += len(sizes)

    def save(self, path: str, schema: schema_module.Schema, metadata: Mapping) -> None:
        """Writes the side file of the TFRecord file `path`.

        Args:
            path: the TFRecord file.
            schema: its columns.
            metadata: JSON values that say how the records were created.

        Raises:
            OSError: the side file cannot be written.
        """
        if not files.is_remote(path) and not os.path.isfile(path):
            return  # A device such as /dev/null has no folder for a side file.
        description = {"columns": schema.to_dicts(), "metadata": dict(metadata)}
        text = np.array(json.dumps(description, sort_keys=True))
        with (
            files.complete_or_absent(side_path(path), "wb") as file,
            zipfile.ZipFile(typing.cast(Any, _Unseekable(file)), "w") as archive,
        ):
            # An explicit ZipInfo has a fixed time, so equal records give equal files.
            with archive.open(_member("offsets"), "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, self._offsets_header())
                for offsets in self._offsets():
                    member.write(offsets.tobytes())
            with archive.open(_member("description"), "w") as member:
                np.lib.format.write_array(member, text, allow_pickle=False)

    def _offsets_header(self):
        shape = (self.num_records + 1,)
        return {"descr": "<i8", "fortran_order": False, "shape": shape}

    def _offsets(self) -> Iterator[np.ndarray]:
        """Yields int64 [N]: starts of the records in blocks, then the file's size."""
        end = np.zeros(1, "<i8")
        yield end
        self._sizes.seek(0)
        while block := self._sizes.read(4 * _SIZES_PER_BLOCK):
            offsets = end + np.cumsum(np.frombuffer(block, np.uint32), dtype="<i8")
            yield offsets
            end = offsets[-1:]
        self._sizes.seek(0, os.SEEK_END)


class _Unseekable:
    """A write-only file for zipfile, because remote files cannot seek."""

    def __init__(self, file):
        self._file = file

    def write(self, data):
        self._file.write(bytes(data))
        return len(data)

    def flush(self):
        self._file.flush()


def _member(name):
    return zipfile.ZipInfo(f"{name}.npy")


def side_path(path: str) -> str:
    """Returns the name of the side file of a TFRecord file."""
    return path + files.SIDE_FILE_SUFFIX


def remove(path: str) -> None:
    """Removes the side file of a TFRecord file, if it exists."""
    if files.exists(side_path(path)):
        files.remove(side_path(path))


def are_text(paths: Sequence[str]) -> bool:
    """Returns whether files contain text instead of TFRecords.

    Their contents decide: the header of a record has a checksum, and text has no zero
    bytes. Empty files can be either.

    Raises:
        OSError: a file cannot be read.
        ValueError: some are text and some are not.
    """
    found = dict(zip(paths, files.map_paths(_is_text, paths), strict=True))
    texts, others = (
        [path for path in paths if found[path] is kind] for kind in (True, False)
    )
    if texts and others:
        raise ValueError(
            f"{texts[0]} contains text, but {others[0]} contains records; pass files "
            "of one kind."
        )
    return bool(texts)


def _is_text(path):
    """Returns whether a file contains text; None if it is empty."""
    if files.exists(side_path(path)):
        return False
    with files.open_file(path, "rb") as file:
        block = file.read(_BYTES_THAT_SHOW_KIND)
    if not block:
        return None
    if len(block) >= data_encoding.HEADER_BYTES:
        data = np.frombuffer(block, np.uint8)
        _, intact = data_encoding.frame_parts(data, np.zeros(1, np.int64))
        if intact.all():
            return False
    return b"\0" not in block


def load_or_scan(path: str) -> RecordIndex:
    """Returns the index of a TFRecord file.

    Args:
        path: the file. Without a side file it is scanned; no side file is written.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is truncated or damaged, or differs from its side file.
    """
    size = files.size(path)
    if not files.exists(side_path(path)):
        offsets = _compact(_scan(path, size))
        return RecordIndex(offsets=offsets, schema=None, metadata={})
    index = _load(side_path(path))
    expected = int(index.offsets[-1])
    if size != expected:
        raise ValueError(
            f"{path}: has {size} bytes, but {side_path(path)} was written with "
            f"{expected}. The records are truncated or were replaced: create them "
            f"again, or remove the side file if they are correct."
        )
    return index


def _load(path):
    buffer = io.BytesIO(b"".join(parallel_reads.blocks(path)))
    try:
        with contextlib.closing(np.load(buffer, allow_pickle=False)) as arrays:
            description = json.loads(str(arrays["description"]))
            offsets = arrays["offsets"].astype(np.int64)
            is_sound = offsets.ndim == 1 and offsets.size and offsets[0] == 0
            if not is_sound or (np.diff(offsets) <= 0).any():
                raise ValueError("the offsets of records increase from 0")
            return RecordIndex(
                offsets=_compact(offsets),
                schema=schema_module.Schema.from_dicts(description["columns"]),
                metadata=_checked_metadata(description["metadata"]),
            )
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        OSError,
        RecursionError,
        zipfile.BadZipFile,
    ):
        raise ValueError(
            f"{path}: not a side file of TFRecords; remove it to read the records "
            f"without it."
        ) from None


def _compact(offsets):
    return offsets.astype(np.uint32) if offsets[-1] < 1 << 32 else offsets


def _checked_metadata(metadata):
    """Returns the metadata after checking the types of the values that readers use."""
    kinds = {"vocab_fingerprint": str, "vocab_file": str, "vocab_size": int}
    for name, kind in kinds.items():
        if not isinstance(metadata.get(name), kind | None):
            raise TypeError(f"{name} is not of the type {kind.__name__}")
    return metadata


def _scan(path, size):
    """Returns the offsets of a file's records, following their headers."""
    found = [np.zeros(0, np.int64)]
    position = end = 0  # Of the next record, and of what was read.
    rest = b""  # From `position` to `end`, without the rest of a record's content.
    for block in parallel_reads.blocks(path):
        end += len(block)
        rest += block
        rest = rest[max(position - (end - len(rest)), 0) :]
        places, after = _walk(rest)
        _check_headers(path, position, rest, places)
        found.append(places + position)
        position += after
        rest = rest[after:]
    if rest or position > size:
        last = position if rest else int(np.concatenate(found)[-1])
        raise ValueError(_truncated(path, last, size))
    return np.concatenate([*found, [position]]).astype(np.int64)


def _walk(block):
    """Returns the offsets of the records in a block, and that of the next record."""
    places, place = [], 0
    last = len(block) - data_encoding.HEADER_BYTES
    frame_bytes = data_encoding.HEADER_BYTES + data_encoding.FOOTER_BYTES
    while place <= last:
        places.append(place)
        place += struct.unpack_from("<Q", block, place)[0] + frame_bytes
    # A damaged length may exceed int64; `_check_headers` reports it.
    return np.array(places, np.int64), place


def _check_headers(path, position, block, places):
    _, intact = data_encoding.frame_parts(np.frombuffer(block, np.uint8), places)
    if not intact.all():
        offset = position + int(places[np.argmin(intact)])
        raise ValueError(
            f"{path}: expected a TFRecord at byte {offset}, but the checksum of its "
            f"length differs; the file is damaged or is not a TFRecord file."
        )


def _truncated(path, position, size):
    return (
        f"{path} is truncated: the record at byte {position} extends beyond the end of "
        f"the file ({size} bytes); create or copy the file again."
    )
