"""Files as streams of bytes, whatever they are packed with: gz, bz2, zst, zip.

What a file is packed with is told by its first bytes, not by its name. Nothing is
unpacked to the disk, and no more than a block is held in memory.
"""

import bz2
import contextlib
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from collections.abc import Iterator

from bert_tf import files

_BLOCK_BYTES = 1 << 20
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zst", b"PK": "zip"}
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
# How the libraries say that what is packed is cut off or damaged.
_DAMAGE = (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError)


def packing(path: str) -> str:
    """Returns "gz", "bz2", "zst", "zip", or "" for a file that is none of them.

    Raises:
        OSError: the file cannot be read.
    """
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
        ValueError: it is damaged, needs a password, or holds a name that leads out of
            the folder that it would be unpacked to.
    """
    with clear_damage(path), files.open_file(path, "rb") as file:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    for entry in entries:
        # zipfile has already cut names at NUL; backslashes are Windows's.
        parts = entry.filename.replace("\\", "/").split("/")
        if ".." in parts or parts[0] == "" or parts[0].endswith(":"):
            raise ValueError(
                f"{path}: it holds a file named {entry.filename!r}, which leads out of "
                "the archive; such archives are not read."
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
) -> Iterator[io.BufferedIOBase]:
    """Yields the unpacked bytes of a file as a stream.

    Args:
        path: the file; gz, bz2 or zst streams one after another are one.
        member: name of a file in a zip archive.
        start: byte of the packed file to begin at, where one of its streams begins.
        on_bytes: told how many more bytes of the file on the disk were read.

    Raises:
        ImportError: the file is zst, and zstandard is not installed.
        OSError: it cannot be read.
        ValueError: it is cut off or damaged.
    """
    kind = packing(path)
    with contextlib.ExitStack() as stack:
        stack.enter_context(clear_damage(path))
        raw = stack.enter_context(files.open_file(path, "rb"))
        if start:
            raw.seek(start)
        told = _Told(raw, on_bytes)
        if kind == "zip":
            archive = stack.enter_context(zipfile.ZipFile(told))
            yield stack.enter_context(archive.open(member))
        elif kind == "gz":
            yield stack.enter_context(gzip.GzipFile(fileobj=told, mode="rb"))
        elif kind == "bz2":
            yield stack.enter_context(bz2.BZ2File(told))
        elif kind == "zst":
            yield io.BufferedReader(_Zst(told, path), _BLOCK_BYTES)
        else:
            yield told


@contextlib.contextmanager
def clear_damage(path: str):
    """Turns what the libraries raise for damaged files into a clear ValueError."""
    try:
        yield
    except _DAMAGE as error:
        what = "it ends too early" if isinstance(error, EOFError) else str(error)
        raise ValueError(
            f"{path}: damaged or cut off ({what.rstrip('.')}); fetch it again."
        ) from None
    except OSError as error:
        # bz2 has no exception of its own.
        if error.errno is None and "Invalid data stream" in str(error):
            raise ValueError(f"{path}: damaged ({error}); fetch it again.") from None
        raise
    except NotImplementedError as error:  # zipfile: a method that it does not know.
        raise ValueError(f"{path}: {error}; unpack it first.") from None


class _Told(io.RawIOBase):
    """A file that tells how much of it is read."""

    def __init__(self, file, on_bytes):
        self._file = file
        self._on_bytes = on_bytes

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        if whence == io.SEEK_END:  # GFile knows sizes, and not this.
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


class _Zst(io.RawIOBase):
    """Frames of Zstandard; unlike the library's own reader, it sees a cut-off one."""

    def __init__(self, file, path):
        try:
            import zstandard
        except ModuleNotFoundError:
            raise ImportError(
                f"{path}: .zst files are read by zstandard, which is not installed; "
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
