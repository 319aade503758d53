"""What is inside a `.keras` or a `.weights.h5` file, read and never run.

A `.keras` file is a zip of `config.json`, `metadata.json` and `model.weights.h5`.
Nothing here makes an object that such a file describes: its class is compared with
those of this package by name, so a Lambda layer in it is never even looked at.
"""

import contextlib
import dataclasses
import io
import json
import math
import os
import struct
import zipfile

import h5py
import ml_dtypes
import numpy as np

from bert_tf import files

ARCHIVE_SUFFIX = ".keras"
WEIGHTS_SUFFIX = ".weights.h5"
CONFIG_MEMBER = "config.json"
METADATA_MEMBER = "metadata.json"
_WEIGHTS_MEMBER = "model.weights.h5"
# Of this package's own keys in metadata.json, and its attribute in a .weights.h5.
OWN_KEY = "bert_tf"
# The largest vocabulary of the release takes 2 MB as JSON.
_MAX_JSON_BYTES = 1 << 25
# What is stored may stand for this many times its bytes; Keras compresses nothing.
_MAX_EXPANSION = 100
_CHUNK_BYTES = 1 << 20
# Fixed part of a zip member's own header: lengths of its name and extra field end it.
_LOCAL_HEADER = struct.Struct("<26xHH")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """The JSON members of a `.keras` file."""

    config: dict  # As Keras serialized the model: class_name, config, ...
    metadata: dict  # keras_version, and what this package adds.


def describe(path):
    """Returns the `Description` of a `.keras` file, whose bytes are all checked.

    Raises:
        OSError: there is no such file.
        ValueError: it is cut short, damaged, or no `.keras` file.
    """
    with _archive(path) as archive:
        description = Description(
            config=_read_json(archive, CONFIG_MEMBER, path),
            metadata=_read_json(archive, METADATA_MEMBER, path),
        )
        _check_weights(archive, path)
    return description


def shapes(path):
    """Returns {path in the HDF5 file: shape} of a file's datasets.

    Raises:
        OSError: there is no such file.
        ValueError: it is damaged, or has a dataset that is not in it as a whole.
    """
    found = {}
    with opened_weights(path) as weights:

        def visit(name, node):
            # Soft and external links are not visited: no other file is opened.
            if isinstance(node, h5py.Dataset):
                _check_dataset(name, node, path)
                found[name] = tuple(node.shape)

        weights.visititems(visit)
    return found


def read_each(path, wanted):
    """Yields (path in the HDF5 file, float32 array), one in memory at a time.

    Raises:
        OSError: there is no such file.
        ValueError: a dataset is not there, or the file is damaged.
    """
    with opened_weights(path) as weights:
        for name in wanted:
            if name not in weights:
                raise ValueError(f"{path} has no dataset {name}.")
            dataset = weights[name]
            # HDF5 knows no bfloat16; Keras notes it beside two opaque bytes.
            is_bfloat16 = dataset.attrs.get("dtype") == "bfloat16"
            dtype = ml_dtypes.bfloat16 if is_bfloat16 else dataset.dtype
            yield name, np.array(dataset, dtype=dtype).astype("float32", copy=False)


@contextlib.contextmanager
def opened_weights(path):
    """Yields the `h5py.File` of a `.keras` or `.weights.h5` file, for reading.

    Raises:
        OSError: there is no such file.
        ValueError: it is damaged, or no such file.
    """
    with contextlib.ExitStack() as stack:
        if os.fspath(path).endswith(ARCHIVE_SUFFIX):
            archive = stack.enter_context(_archive(path))
            file = stack.enter_context(_weights_of(archive, path))
        else:
            file = stack.enter_context(files.open_file(path, "rb"))
        try:
            weights = stack.enter_context(h5py.File(file, "r"))
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(
                f"{path}: its weights are no whole HDF5 file ({error}); it may have "
                "been cut short: copy it again."
            ) from None
        try:
            yield weights
        except (OSError, RuntimeError) as error:
            raise ValueError(f"{path}: its weights are damaged ({error}).") from None


@contextlib.contextmanager
def _archive(path):
    with files.open_file(path, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise ValueError(
                f"{path} is no whole .keras file ({str(error).lower()}); it may have "
                "been cut short: copy it again."
            ) from None
        with archive:
            yield archive


def _member(archive, name, path):
    found = [info for info in archive.infolist() if info.filename == name]
    if len(found) != 1:
        raise ValueError(
            f"{path} has {len(found) or 'no'} {name}; expected a file that "
            "model.save wrote, with config.json, metadata.json and model.weights.h5."
        )
    if found[0].flag_bits & 1:
        raise ValueError(f"{path}: {name} in it is encrypted; decrypt the file first.")
    return found[0]


def _read_json(archive, name, path):
    info = _member(archive, name, path)
    if info.file_size > _MAX_JSON_BYTES:
        raise ValueError(
            f"{path}: {name} in it would have {info.file_size} bytes, expected at most "
            f"{_MAX_JSON_BYTES}; this is no file of Keras's."
        )
    try:
        values = json.loads(archive.read(info))
    except (ValueError, RecursionError, zipfile.BadZipFile, NotImplementedError) as e:
        raise ValueError(f"{path}: {name} in it cannot be read: {e}.") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: {name} in it holds no JSON object.")
    return values


def _check_weights(archive, path):
    """Reads all bytes of the weights once, which compares their checksum."""
    info = _member(archive, _WEIGHTS_MEMBER, path)
    if info.file_size > _MAX_EXPANSION * max(info.compress_size, 1):
        raise ValueError(
            f"{path}: {_WEIGHTS_MEMBER} would unpack from {info.compress_size} to "
            f"{info.file_size} bytes; this is no file of Keras's."
        )
    try:
        with archive.open(info) as member:
            while member.read(_CHUNK_BYTES):
                pass
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise ValueError(
            f"{path}: {_WEIGHTS_MEMBER} in it is damaged ({error}); copy it again."
        ) from None


def _weights_of(archive, path):
    """Returns a file object of the weights in which one may jump about."""
    info = _member(archive, _WEIGHTS_MEMBER, path)
    if info.compress_type != zipfile.ZIP_STORED:
        return io.BytesIO(archive.read(info))
    # Stored as they are, they are a stretch of the file; zipfile's own object would
    # read from the start again for every step back.
    archive.fp.seek(info.header_offset)
    lengths = _LOCAL_HEADER.unpack(archive.fp.read(_LOCAL_HEADER.size))
    start = info.header_offset + _LOCAL_HEADER.size + sum(lengths)
    return _Stretch(archive.fp, start, info.file_size)


class _Stretch(io.RawIOBase):
    """Some of a file's bytes as a file object of their own, for reading."""

    def __init__(self, file, start, size):
        self._file = file
        self._start = start
        self._size = size
        self._position = 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._position

    def seek(self, offset, whence=os.SEEK_SET):
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer):
        length = max(0, min(len(buffer), self._size - self._position))
        self._file.seek(self._start + self._position)
        data = self._file.read(length)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _check_dataset(name, dataset, path):
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{path}: the dataset {name} lies in another file.")
    if dataset.dtype.hasobject:
        raise ValueError(f"{path}: the dataset {name} holds no numbers.")
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if size > _MAX_EXPANSION * max(stored, 1):
        raise ValueError(
            f"{path}: the dataset {name} would have {size} bytes, but {stored} are "
            "stored; this is no file of Keras's."
        )
