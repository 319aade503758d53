"""Reads plain and compressed files (gz, bz2, zst, zip) as streams of bytes.

The first bytes of a file decide how it is decompressed, not its name. Nothing is
unpacked to disk, and only one block is held in memory.
"""

import bz2
import contextlib
import gzip
import io
import lzma
import typing
import zipfile
import zlib
from collections.abc import Callable
from collections.abc import Iterator

from bert_tf import files

_BLOCK_BYTES = 1 << 20
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zst", b"PK": "zip"}
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
# What the libraries raise for truncated or damaged files.
_DAMAGE = (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError)


class ByteStream(typing.Protocol):
    """A stream of bytes that can be read from start to end."""

    def read(self, size: int = -1, /) -> bytes:
        """Returns up to `size` bytes, or all if it is -1; b"" at the end."""


def packing(path: str) -> str:
    """Returns "gz", "bz2", "zst" or "zip"; "" for an uncompressed file."""
    with files.open_file(path, "rb") as file:
        start = file.read(4)
    for magic, name in _MAGIC.items():
        if start.startswith(magic) and (name != "zip" or start in _ZIP_STARTS):
            return name
    return ""


def members(path: str) -> list[str]:
    """Returns the names of the files in a zip archive, sorted.

    Raises:
        OSError: the file cannot be read.
        ValueError: the archive is damaged or encrypted, or a name in it points outside
            the archive.
    """
    with clear_damage(path), files.open_file(path, "rb") as file:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    for entry in entries:
        # zipfile has already cut names at NUL. Windows writes backslashes.
        parts = entry.filename.replace("\\", "/").split("/")
        if ".." in parts or parts[0] == "" or parts[0].endswith(":"):
            raise ValueError(
                f"{path}: contains a file named {entry.filename!r}, which points "
                "outside the archive; such archives are refused."
            )
        if entry.flag_bits & 1:
            raise ValueError(
                f"{path}: {entry.filename} is encrypted; unpack the archive with its "
                "password first."
            )
    return sorted(entry.filename for entry in entries)


@contextlib.contextmanager
def open_stream(
    path: str,
    *,
    member: str = "",
    start: int = 0,
    on_bytes: Callable[[int], None] = lambda num_bytes: None,
) -> Iterator[ByteStream]:
    """Yields the unpacked bytes of a file as a stream.

    Args:
        path: the file. Concatenated gz, bz2 or zst streams are read as one.
        member: the name of a file in a zip archive.
        start: the byte of the compressed file to start at; a stream must begin there.
        on_bytes: called with the number of bytes read from disk since the last call.

    Raises:
        ImportError: the file is zst, and zstandard is not installed.
        OSError: the file cannot be read.
        ValueError: the file is truncated or damaged.
    """
    kind = packing(path)
    with contextlib.ExitStack() as stack:
        stack.enter_context(clear_damage(path))
        raw = stack.enter_context(files.open_file(path, "rb"))
        if start:
            raw.seek(start)
        counted = _CountingFile(raw, on_bytes)
        if kind == "zip":
            archive = stack.enter_context(zipfile.ZipFile(counted))
            yield stack.enter_context(archive.open(member))
        elif kind == "gz":
            yield stack.enter_context(gzip.GzipFile(fileobj=counted, mode="rb"))
        elif kind == "bz2":
            yield stack.enter_context(bz2.BZ2File(counted))
        elif kind == "zst":
            yield io.BufferedReader(_ZstReader(counted, path), _BLOCK_BYTES)
        else:
            yield counted


@contextlib.contextmanager
def clear_damage(path: str) -> Iterator[None]:
    """Turns the libraries' errors for damaged files into one clear ValueError."""
    try:
        yield
    except _DAMAGE as error:
        what = "it is truncated" if isinstance(error, EOFError) else str(error)
        raise ValueError(
            f"{path}: damaged or truncated ({what.rstrip('.')}); download it again."
        ) from None
    except OSError as error:
        # bz2 has no specific exception.
        if error.errno is None and "Invalid data stream" in str(error):
            raise ValueError(f"{path}: damaged ({error}); download it again.") from None
        raise
    except NotImplementedError as error:  # zipfile: unknown compression method.
        raise ValueError(f"{path}: {error}; unpack it first.") from None


class _CountingFile(io.RawIOBase):
    """A file that reports how many bytes are read from it."""

    def __init__(self, file, on_bytes):
        self._file = file
        self._on_bytes = on_bytes

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        if whence == io.SEEK_END:  # GFile does not support SEEK_END.
            offset, whence = self._size() + offset, io.SEEK_SET
        self._file.seek(offset, whence)
        return self._file.tell()

    def tell(self):
        return self._file.tell()

    def read(self, size=-1):
        data = self._file.read(size)
        self._on_bytes(len(data))
        return data

    def readinto(self, buffer):
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _size(self):
        return files.size(self._file.name)


class _ZstReader(io.RawIOBase):
    """Reads Zstandard frames. Unlike the library's reader, it detects truncation."""

    def __init__(self, file, path):
        try:
            import zstandard
        except ModuleNotFoundError:
            raise ImportError(
                f"{path}: reading .zst files needs zstandard, which is not installed; "
                "pip install 'bert_tf[corpus]'."
            ) from None
        self._zstandard = zstandard
        self._file = file
        self._frame = None
        self._packed = b""
        self._data = b""

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._data:
            packed = self._packed or self._file.read(_BLOCK_BYTES // 8)
            self._packed = b""
            if not packed:
                if self._frame is not None:
                    raise EOFError
                return 0
            self._data = self._unpacked(packed)
        size = min(len(buffer), len(self._data))
        buffer[:size] = self._data[:size]
        self._data = self._data[size:]
        return size

    def _unpacked(self, packed):
        if self._frame is None:
            self._frame = self._zstandard.ZstdDecompressor().decompressobj()
        try:
            data = self._frame.decompress(packed)
        except self._zstandard.ZstdError as error:
            raise zlib.error(str(error)) from None
        if self._frame.eof:
            self._packed, self._frame = self._frame.unused_data, None
        return data
