"""Reads plain text, and text that gzip or bzip2 compressed, without unpacking to disk.

The first bytes of a file say how it is compressed, not its name.
"""

import bz2
import codecs
import contextlib
import gzip
import io
import zlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import IO
from typing import Any

from bert_tf import file_errors
from bert_tf import files

_BLOCK_BYTES = 1 << 18
_BZIP2_START = b"BZh"
# How zip archives start, and files that zstd or xz compressed.
_ARCHIVE_STARTS = (b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ")
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextlib.contextmanager
def open_text(path: str, on_bytes: Callable[[int], None]) -> Iterator[IO[bytes]]:
    """Opens a text file, which is unpacked while it is read.

    Args:
        path: the file. Concatenated gzip or bzip2 streams are read as one.
        on_bytes: called with the number of bytes read from disk since the last call.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged, an archive, or not text.
    """
    with files.open_file(path, "rb") as file:
        stream: Any = io.BufferedReader(_Counted(file, on_bytes), _BLOCK_BYTES)
        start = stream.peek()
        if start.startswith(file_errors.GZIP_START):
            stream = io.BufferedReader(gzip.GzipFile(fileobj=stream))
        elif start.startswith(_BZIP2_START):
            stream = io.BufferedReader(bz2.BZ2File(stream))
        try:
            _check_is_text(path, stream.peek())
            yield stream
        except (EOFError, zlib.error, OSError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # Of the file system; those of gzip and bzip2 have no number.
            raise ValueError(
                f"{path}: damaged or truncated ({error}); download it again."
            ) from None


def lines(path: str, on_bytes: Callable[[int], None]) -> Iterator[str]:
    """Yields the lines of a file as text, without their line ends.

    Args, raises: as `open_text`; ValueError also if a line is not UTF-8.
    """
    with open_text(path, on_bytes) as stream:
        yield from file_errors.decoded_lines(stream, path)


class _Counted(io.RawIOBase):
    """A file that reports how many of its bytes were read."""

    def __init__(self, file: IO[bytes], on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._on_bytes(len(data))
        return len(data)


def _check_is_text(path: str, start: bytes) -> None:
    is_utf_16 = start.startswith(_UTF_16_MARKS)  # Which `decoded_lines` refuses.
    if start.startswith(_ARCHIVE_STARTS) or (b"\0" in start and not is_utf_16):
        raise ValueError(
            f"{path} is an archive or has NUL bytes; expected UTF-8 text, plain or "
            "compressed with gzip or bzip2. Unpack other formats first."
        )
