"""Where each record of a TFRecord file starts: from its side file, or by a scan."""

import contextlib
import dataclasses
import io
import json
import os
import struct
import zipfile

import numpy as np

from bert_tf import files
from bert_tf.data import encoding
from bert_tf.data import schema as schemas

_BLOCK_BYTES = 1 << 24  # Read at a time while scanning.


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordIndex:
    """What is known of one TFRecord file without reading its records."""

    offsets: np.ndarray  # int64 [R + 1]: starts of the records, then the file's size.
    schema: schemas.Schema | None  # None: no side file, so not known yet.
    metadata: dict  # What the writer said; empty without a side file.

    def save(self, path: str) -> None:
        """Writes the side file of the TFRecord file `path`.

        Raises:
            OSError: it cannot be written.
        """
        if not files.is_remote(path) and not os.path.isfile(path):
            return  # A device such as /dev/null has no place beside it.
        description = {"columns": self.schema.to_dicts(), "metadata": self.metadata}
        text = json.dumps(description, sort_keys=True)
        buffer = io.BytesIO()
        np.savez(buffer, offsets=self.offsets, description=np.array(text))
        with files.complete_or_absent(side_path(path), "wb") as file:
            file.write(buffer.getvalue())


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
                schema=schemas.Schema.from_dicts(description["columns"]),
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
            if position + encoding.HEADER_BYTES > size:
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
    last = len(block) - encoding.HEADER_BYTES
    frame_bytes = encoding.HEADER_BYTES + encoding.FOOTER_BYTES
    while place <= last:
        places.append(place)
        place += struct.unpack_from("<Q", block, place)[0] + frame_bytes
    # A damaged length can be past what NumPy's int64 holds; it is reported as such.
    return np.array(places, np.int64), place


def _check_headers(path, position, block, places):
    _, intact = encoding.frame_parts(np.frombuffer(block, np.uint8), places)
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
