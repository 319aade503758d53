"""Where each record of a TFRecord file starts: from its side file, or by a scan."""

import contextlib
import dataclasses
import io
import json
import os
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from collections.abc import Mapping

import numpy as np

from bert_tf import files
from bert_tf.data import encoding as data_encoding
from bert_tf.data import schema as schema_module

_BLOCK_BYTES = 1 << 24  # Read at a time while scanning.
_SPOOL_BYTES = 1 << 20  # Held in memory by each `Recorder`.
_SIZES_PER_BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordIndex:
    """What is known of one TFRecord file without reading its records."""

    offsets: np.ndarray  # int64 [R + 1]: starts of the records, then the file's size.
    schema: schema_module.Schema | None  # None: no side file, so not known yet.
    metadata: dict  # What the writer said; empty without a side file.


class Recorder:
    """Takes the sizes of a file's records as they come, and writes its side file.

    Its memory does not grow with the records: beyond a megabyte their sizes are in a
    temporary file. A context manager, which removes that file.

    Attributes:
        num_records: records so far.
    """

    def __init__(self):
        self.num_records = 0
        with contextlib.ExitStack() as stack:
            self._sizes = stack.enter_context(
                tempfile.SpooledTemporaryFile(_SPOOL_BYTES)
            )
            self._stack = stack.pop_all()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind, error, traceback):
        self._stack.close()

    def add(self, sizes: np.ndarray) -> None:
        """Notes the next records.

        Args:
            sizes: int64 [R], bytes of each with header and footer.

        Raises:
            OSError: the temporary file cannot be written.
        """
        # A record is a protocol buffer, which has less than 2 GiB.
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
            metadata: values for JSON that say how the records were made.

        Raises:
            OSError: it cannot be written.
        """
        if not files.is_remote(path) and not os.path.isfile(path):
            return  # A device such as /dev/null has no place beside it.
        description = {"columns": schema.to_dicts(), "metadata": dict(metadata)}
        text = np.array(json.dumps(description, sort_keys=True))
        with (
            files.complete_or_absent(side_path(path), "wb") as file,
            zipfile.ZipFile(_Unseekable(file), "w") as archive,
        ):
            # A ZipInfo of its own has no time in it, so equal records have equal files.
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
    """A file for zipfile to write from start to end; remote ones do nothing else."""

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
    """Removes the side file of a TFRecord file, where there is one."""
    if files.exists(side_path(path)):
        files.remove(side_path(path))


def load_or_scan(path: str) -> RecordIndex:
    """Returns the index of a TFRecord file.

    Args:
        path: the file. Its side file is read where there is one, and none is written.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is truncated or damaged, or does not fit its side file.
    """
    size = files.size(path)
    if not files.exists(side_path(path)):
        return RecordIndex(offsets=_scan(path, size), schema=None, metadata={})
    index = _load(side_path(path))
    expected = int(index.offsets[-1])
    if size != expected:
        raise ValueError(
            f"{path}: has {size} bytes, but {side_path(path)} was written with "
            f"{expected}; the records are truncated or were replaced: make them "
            f"again, or remove the side file if they are right."
        )
    return index


def _load(path):
    with files.open_file(path, "rb") as file:
        buffer = io.BytesIO(file.read())
    try:
        with contextlib.closing(np.load(buffer, allow_pickle=False)) as arrays:
            description = json.loads(str(arrays["description"]))
            return RecordIndex(
                offsets=arrays["offsets"].astype(np.int64),
                schema=schema_module.Schema.from_dicts(description["columns"]),
                metadata=description["metadata"],
            )
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile):
        raise ValueError(
            f"{path}: not a side file of TFRecords; remove it, and the records are "
            f"read without it."
        ) from None


def _scan(path, size):
    """Returns the offsets of a file's records, following their headers."""
    found = [np.zeros(0, np.int64)]
    position = 0
    with files.open_file(path, "rb") as file:
        while position < size:
            if position + data_encoding.HEADER_BYTES > size:
                raise ValueError(_truncated(path, position, size))
            file.seek(position)
            block = file.read(_BLOCK_BYTES)
            places, after = _walk(block)
            _check_headers(path, position, block, places)
            found.append(places + position)
            position += after
    if position > size:
        raise ValueError(_truncated(path, int(found[-1][-1]), size))
    return np.concatenate([*found, [position]]).astype(np.int64)


def _walk(block):
    """Returns where records start in a block, and where the next one would."""
    places, place = [], 0
    last = len(block) - data_encoding.HEADER_BYTES
    frame_bytes = data_encoding.HEADER_BYTES + data_encoding.FOOTER_BYTES
    while place <= last:
        places.append(place)
        place += struct.unpack_from("<Q", block, place)[0] + frame_bytes
    # A damaged length can be past what NumPy's int64 holds; it is reported as such.
    return np.array(places, np.int64), place


def _check_headers(path, position, block, places):
    _, intact = data_encoding.frame_parts(np.frombuffer(block, np.uint8), places)
    if not intact.all():
        offset = position + int(places[np.argmin(intact)])
        raise ValueError(
            f"{path}: no TFRecord starts at byte {offset} (the checksum of its length "
            f"differs); the file is damaged, or not a TFRecord file."
        )


def _truncated(path, position, size):
    return (
        f"{path}: truncated: the record at byte {position} goes on after the end of "
        f"the file ({size} bytes); make or copy the file again."
    )
