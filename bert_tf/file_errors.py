"""Part of `files`: turns errors into one sentence that names the file."""

import bz2
import contextlib
import gzip
import io
import os
import re
import types
import zlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import IO
from typing import Any

_BUFFER_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 18
_SENTENCES: Mapping[type[OSError], str] = types.MappingProxyType(
    {
        FileNotFoundError: "No such file: {path}.",
        PermissionError: "{path}: permission denied.",
        IsADirectoryError: "{path} is a folder; expected a file.",
        NotADirectoryError: "{path}: expected a folder, found a file.",
    }
)
# What `clear_errors` raises.
RAISED: tuple[type[OSError], ...] = (OSError, *_SENTENCES)
# How a file begins that gzip or bzip2 compressed: bzip2 after "BZh" and a digit.
_GZIP_MARK = b"\x1f\x8b"
_BZIP2_MARK = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")


class _NamedFile(io.FileIO):
    """A local file whose errors name it. Python's own error for a full disk does not.

    Errors may be raised when the file is opened, by `write`, and by `flush` and `close`
    of the buffer around it. They show `shown_path`.
    """

    def __init__(self, path: str, mode: str, shown_path: str) -> None:
        self._shown_path = shown_path
        try:
            super().__init__(path, mode)
        except FileNotFoundError as error:  # The folder is missing, or is /proc.
            raise self._clear(error) from None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise self._clear(error) from None

    def _clear(self, error: OSError) -> OSError:
        return OSError(f"{self._shown_path}: cannot be written: {error.strerror}.")


def open_local(path: str, mode: str, shown_path: str) -> IO[Any]:
    """Opens a local file for `files.open_file`; write errors show `shown_path`."""
    if "r" in mode:
        file: Any = io.BufferedReader(io.FileIO(path))
    else:
        named = _NamedFile(path, mode.replace("b", ""), shown_path)
        file = io.BufferedWriter(named, _BUFFER_BYTES)
    if "b" in mode:
        return file
    return io.TextIOWrapper(file, encoding="utf-8", newline="\n")


@contextlib.contextmanager
def unpacked(
    file: IO[bytes], name: object, on_bytes: Callable[[int], Any] = lambda _: None
) -> Iterator[io.BufferedReader]:
    """Yields the bytes of a file, unpacked while they are read if they are compressed.

    The first bytes of the file, not its name, say how it is compressed.

    Args:
        file: the file. Concatenated gzip or bzip2 streams are read as one.
        name: of the file, for the error message.
        on_bytes: called with the number of bytes read from disk since the last call.

    Raises:
        ValueError: the compressed data are damaged or truncated.
    """
    stream: Any = io.BufferedReader(_Counted(file, on_bytes), _BLOCK_BYTES)
    start = stream.peek()
    if start.startswith(_GZIP_MARK):
        stream = io.BufferedReader(gzip.GzipFile(fileobj=stream))
    elif _BZIP2_MARK.match(start):
        stream = io.BufferedReader(bz2.BZ2File(stream))
    try:
        yield stream
    except (EOFError, zlib.error, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # Of the file system; those of gzip and bzip2 have no number.
        raise ValueError(
            f"{name}: damaged or truncated ({error}); copy or download it again."
        ) from None


class _Counted(io.RawIOBase):
    """A file that reports how many of its bytes were read."""

    def __init__(self, file: IO[bytes], on_bytes: Callable[[int], Any]) -> None:
        self._file = file
        self._on_bytes = on_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # A pipe yields what there is; not all files have `read1`.
        read = getattr(self._file, "read1", self._file.read)
        data = read(len(buffer))
        buffer[: len(data)] = data
        self._on_bytes(len(data))
        return len(data)


def decoded_lines(lines: Iterable[bytes], name: object) -> Iterator[str]:
    """Yields lines as text without their line ends, for `files.read_lines`.

    Raises:
        ValueError: the text is UTF-16, or a line is not UTF-8. The message contains
            the `name` of the text and the line's number.
    """
    for number, line in enumerate(lines, start=1):
        if number == 1:
            _check_not_utf_16(line, name)
            line = line.removeprefix(b"\xef\xbb\xbf")
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}:{number}: not UTF-8 (byte {error.start + 1} of the line "
                f"is 0x{line[error.start]:02x}); convert the text to UTF-8 "
                "(in Excel: 'CSV UTF-8')."
            ) from None


def _check_not_utf_16(line: bytes, name: object) -> None:
    """Raises ValueError if the first line of a text is UTF-16 or UTF-32.

    Such texts begin with a byte order mark, or have zero bytes between their letters.
    """
    has_mark = line.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))
    if not has_mark and line.count(0) * 3 < len(line.rstrip(b"\n")) + 1:
        return
    is_32 = line.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff"))
    encoding = "UTF-32" if is_32 else "UTF-16"
    raise ValueError(
        f"{name}:1: the text is {encoding}; expected UTF-8. Save it as UTF-8 (in "
        "Excel: 'CSV UTF-8')."
    )


@contextlib.contextmanager
def clear_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns exceptions of Python and TensorFlow into an OSError of one sentence."""
    path = os.fspath(path)
    try:
        yield
    except tuple(_SENTENCES) as error:
        raise _clear(type(error), path) from None
    except OSError as error:
        if error.errno is None and str(error).startswith(f"{path}: "):
            raise  # It is already such a sentence.
        raise OSError(f"{path}: {error.strerror or error}.") from error
    except Exception as error:
        if "://" in path:
            _raise_from_tensorflow(error, path)
        raise


def _clear(kind: type[OSError], path: str) -> OSError:
    return kind(_SENTENCES[kind].format(path=path))


def _raise_from_tensorflow(error: Exception, path: str) -> None:
    import tensorflow as tf

    if isinstance(error, tf.errors.NotFoundError):
        raise _clear(FileNotFoundError, path) from error
    if isinstance(error, tf.errors.PermissionDeniedError):
        raise _clear(PermissionError, path) from error
    if isinstance(error, tf.errors.OpError):
        raise OSError(f"{path}: {error.message}") from error
