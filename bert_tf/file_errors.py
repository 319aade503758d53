"""A part of `files`: what makes its errors one clear sentence with the file's name."""

import contextlib
import io
from collections.abc import Iterable
from collections.abc import Iterator

_BUFFER_BYTES = 1 << 16


class NamedFile(io.FileIO):
    """A local file whose errors name it; Python's own, of a full disk, do not.

    Args:
        path: the file.
        mode: "w" or "a".
        told_path: what errors call it.

    Raises:
        OSError: it cannot be opened; later, from `write`, or `flush` and `close` of
            what buffers it: it cannot be written.
    """

    def __init__(self, path, mode, told_path):
        self._told_path = told_path
        try:
            super().__init__(path, mode)
        except FileNotFoundError as error:  # There is no folder, or it is /proc.
            raise self._clear(error) from None

    def write(self, data):
        """Writes bytes; returns how many."""
        try:
            return super().write(data)
        except OSError as error:
            raise self._clear(error) from None

    def _clear(self, error):
        return OSError(f"{self._told_path}: cannot be written: {error.strerror}.")


def open_local(path, mode, told_path):
    """Opens a local file as `files.open_file` does; errors of writing name it.

    Raises:
        OSError: it cannot be opened.
    """
    kind = mode.replace("b", "")
    if kind in ("w", "a"):
        named = NamedFile(path, kind, told_path)
        file = io.BufferedWriter(named, _BUFFER_BYTES)
    else:
        file = io.BufferedReader(io.FileIO(path, kind))
    if "b" in mode:
        return file
    return io.TextIOWrapper(file, encoding="utf-8", newline="\n")


def decoded_lines(lines: Iterable, name) -> Iterator[str]:
    """Yields lines as text without their line ends, as `read_lines` does.

    Args:
        lines: lines as bytes, or as text.
        name: where they come from, for the message.

    Raises:
        ValueError: a line is not UTF-8; the message has `name` and its number.
    """
    for number, line in enumerate(lines, start=1):
        if isinstance(line, str):
            line = line.encode("utf-8", "surrogateescape")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}:{number}: not UTF-8 (byte {error.start + 1} of the line "
                f"is 0x{line[error.start]:02x}); convert the text to UTF-8."
            ) from None


@contextlib.contextmanager
def clear_errors(path):
    """Turns what Python and TensorFlow raise into an OSError of one sentence."""
    sentences = {
        FileNotFoundError: f"There is no file {path}.",
        PermissionError: f"{path}: permission denied.",
        IsADirectoryError: f"{path} is a folder; expected a file.",
        NotADirectoryError: f"{path}: expected a folder, found a file.",
    }
    try:
        yield
    except tuple(sentences) as error:
        raise type(error)(sentences[type(error)]) from None
    except OSError as error:
        if error.errno is None and str(error).startswith(f"{path}: "):
            raise  # It is such a sentence already.
        raise OSError(f"{path}: {error.strerror or error}.") from error
    except Exception as error:
        if "://" in path:
            _raise_from_tensorflow(error, path, sentences)
        raise


def _raise_from_tensorflow(error, path, sentences):
    import tensorflow as tf

    if isinstance(error, tf.errors.NotFoundError):
        raise FileNotFoundError(sentences[FileNotFoundError]) from error
    if isinstance(error, tf.errors.PermissionDeniedError):
        raise PermissionError(sentences[PermissionError]) from error
    if isinstance(error, tf.errors.OpError):
        raise OSError(f"{path}: {error.message}") from error
