"""The offsets of the records of a TFRecord file, from its side file or by a scan."""

import array
import contextlib
import dataclasses
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import json_values
from bert_tf.data import encoding as data_encoding
from bert_tf.data import schema as schema_module

_BYTES_THAT_SHOW_KIND = 1 << 12
# The types of the values that readers use.
_METADATA = {
    "vocab_fingerprint?": str | None,
    "vocab_file?": str | None,
    "vocab_size?": int | None,
    "unknown_share?": float | None,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordIndex:
    """What is known about a TFRecord file without reading its records."""

    # [R + 1]: starts of the records, then the file's size. int64; in a file below 4 GiB
    # uint32, because a corpus has hundreds of millions of records.
    offsets: np.ndarray
    schema: schema_module.Schema | None  # None without a side file.
    metadata: dict[str, Any]  # As the writer recorded it; empty without a side file.


def save(
    path: str, sizes: np.ndarray, schema: schema_module.Schema, metadata: Mapping
) -> None:
    """Writes the side file of a TFRecord file.

    Args:
        path: the TFRecord file.
        sizes: int [R], bytes of each record with header and footer.
        schema: its columns.
        metadata: JSON values that say how the records were created.

    Raises:
        OSError: the side file cannot be written.
    """
    if not files.is_remote(path) and not os.path.isfile(path):
        return  # A device such as /dev/null has no folder for a side file.
    description = {"columns": schema.to_dicts(), "metadata": dict(metadata)}
    arrays = {
        "offsets": np.concatenate([[0], np.cumsum(sizes, dtype="<i8")]).astype("<i8"),
        "description": np.array(json.dumps(description, sort_keys=True)),
    }
    buffer = io.BytesIO()  # Remote files cannot seek.
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, values in arrays.items():
            # An explicit ZipInfo has a fixed time, so equal records give equal files.
            member = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, values, allow_pickle=False)
    with files.complete_or_absent(side_path(path), "wb") as file:
        file.write(buffer.getvalue())


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
    is_text = dict(zip(paths, files.map_paths(_is_text, paths), strict=True))
    texts = [path for path in paths if is_text[path] is True]
    others = [path for path in paths if is_text[path] is False]
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
    block = files.read_range(path, 0, _BYTES_THAT_SHOW_KIND)
    if not block:
        return None
    header = block[: data_encoding.HEADER_BYTES]
    return header != data_encoding.header(_length(header)) and b"\0" not in block


def load_or_scan(path: str) -> RecordIndex:
    """Returns the index of a TFRecord file, which is scanned if it has no side file.

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
    buffer = io.BytesIO(files.read_range(path, 0, files.size(path)))
    try:
        with contextlib.closing(np.load(buffer, allow_pickle=False)) as arrays:
            description = json.loads(str(arrays["description"]))
            offsets = arrays["offsets"].astype(np.int64)
            is_sound = offsets.ndim == 1 and offsets.size and offsets[0] == 0
            if not is_sound or (np.diff(offsets) <= 0).any():
                raise ValueError("the offsets of records increase from 0")
            if json_values.unexpected(description["metadata"], _METADATA):
                raise ValueError("the metadata have other types")
            return RecordIndex(
                offsets=_compact(offsets),
                schema=schema_module.Schema.from_dicts(description["columns"]),
                metadata=description["metadata"],
            )
    # Each of zip, NumPy, JSON and our own schema has its own errors for damaged files.
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        OSError,
        RecursionError,
        zipfile.BadZipFile,
        zlib.error,
    ):
        raise ValueError(
            f"{path}: not a side file of TFRecords; remove it to read the records "
            f"without it."
        ) from None


def _compact(offsets):
    return offsets.astype(np.uint32) if offsets[-1] < 1 << 32 else offsets


def _scan(path, size):
    """Returns the offsets of a file's records, following their headers."""
    offsets = array.array("q", [0])
    frame_bytes = data_encoding.HEADER_BYTES + data_encoding.FOOTER_BYTES
    with files.open_file(path, "rb") as file, files.clear_errors(path):
        while (start := offsets[-1]) < size:
            file.seek(start)
            header = file.read(data_encoding.HEADER_BYTES)
            end = start + _length(header) + frame_bytes
            if len(header) == data_encoding.HEADER_BYTES and (
                header != data_encoding.header(_length(header))
            ):
                raise ValueError(
                    f"{path}: expected a TFRecord at byte {start}, but the checksum of "
                    "its length differs; the file is damaged or is not a TFRecord file."
                )
            if end > size:
                raise ValueError(
                    f"{path} is truncated: the record at byte {start} extends beyond "
                    f"the end of the file ({size} bytes); create or copy it again."
                )
            offsets.append(end)
    return np.array(offsets, np.int64)


def _length(header):
    return int.from_bytes(header[:8], "little")
