"""Part of `files`: turns errors into one sentence that names the file."""

import contextlib
import gzip
import io
import types
import zlib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import IO
from typing import Any

_BUFFER_BYTES = 1 << 16
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
GZIP_START = b"\x1f\x8b"  # The first bytes of a file that gzip compressed.
STANDARD_INPUT = "standard input"  # Shown in place of a file's name.


class NamedFile(io.FileIO):
    """A local file whose errors name it. Python's own error for a full disk does not.

    Errors may be raised when the file is opened, by `write`, and by `flush` and `close`
    of the buffer around it.

    Args:
        path: the file.
        mode: "w" or "a".
        shown_path: the path that error messages show.
    """

    def __init__(self, path: str, mode: str, shown_path: str) -> None:
        self._shown_path = shown_path
        try:
            super().__init__(path, mode)
        except FileNotFoundError as error:  # The folder is missing, or is /proc.
            raise self._clear(error) from None

    def write(self, data: Any) -> int:
        """Writes bytes and returns their number."""
        try:
            return super().write(data)
        except OSError as error:
            raise self._clear(error) from None

    def _clear(self, error: OSError) -> OSError:
        return OSError(f"{self._shown_path}: cannot be written: {error.strerror}.")


def open_local(path: str, mode: str, shown_path: str) -> IO[Any]:
    """Opens a local file for `files.open_file`; write errors show `shown_path`."""
    kind = mode.replace("b", "")
    if kind in ("w", "a"):
        named = NamedFile(path, kind, shown_path)
        file: Any = io.BufferedWriter(named, _BUFFER_BYTES)
    else:
        file = io.BufferedReader(io.FileIO(path, kind))
    if "b" in mode:
        return file
    return io.TextIOWrapper(file, encoding="utf-8", newline="\n")


def decoded_lines(lines: Iterable[bytes | str], name: object) -> Iterator[str]:
    """Yields lines as text without their line ends, for `files.read_lines`.

    Args:
        lines: bytes or text.
        name: source of the lines, for the error message.

    Raises:
        ValueError: the text is UTF-16, or a line is not UTF-8. The message contains
            `name` and the line's number.
    """
    for number, line in enumerate(lines, start=1):
        if isinstance(line, str):
            line = line.encode("utf-8", "surrogateescape")
        if number == 1:
            _check_not_utf_16(line, name)
            line = line.removeprefix(b"\xef\xbb\xbf")
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}:{number}: not UTF-8 (byte {error.start + 1} of the line "
                f"is 0x{line[error.start]:02x}); convert the text to UTF-8."
            ) from None


def decoded_gzip_lines(file: IO[bytes], name: object) -> Iterator[str]:
    """Yields the lines of a compressed file, as `decoded_lines` does.

    Raises:
        ValueError: also if the compressed data are damaged or truncated.
    """
    try:
        with gzip.open(file) as lines:
            yield from decoded_lines(lines, name)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{name}: the gzip data are damaged ({error}); copy the file again."
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
def clear_errors(path: str) -> Iterator[None]:
    """Turns exceptions of Python and TensorFlow into an OSError of one sentence."""
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
