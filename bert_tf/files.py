"""Files: plain Python for local paths, tf.io.gfile for anything with ://.

What is written through `complete_or_absent` is there whole under its final name, or
not there at all, even when the process is killed half way.
"""

import contextlib
import glob
import os
import sys
import uuid
from collections.abc import Iterator
from collections.abc import Sequence

from bert_tf import file_errors

# Ends the names of the files that lie beside TFRecord files; `tf_examples*` must not
# read them as records.
SIDE_FILE_SUFFIX = ".index.npz"


def is_remote(path) -> bool:
    """Returns whether a path names a file system of TensorFlow's, such as gs://."""
    return "://" in os.fspath(path)


def open_file(path, mode="r"):
    """Opens a file; text is UTF-8 with "\\n" as the only line end.

    Args:
        path: a local path, or one that TensorFlow knows (`gs://bucket/name`).
        mode: as for Python's `open`.

    Returns:
        A file object, which is a context manager.

    Raises:
        OSError: the file cannot be opened; the message is one clear sentence.
    """
    path = os.fspath(path)
    with file_errors.clear_errors(path):
        if is_remote(path):
            if "r" in mode and not _gfile().exists(path):
                raise FileNotFoundError(path)
            return _gfile().GFile(path, mode)
        return file_errors.open_local(path, mode, path)


def exists(path) -> bool:
    """Returns whether there is a file or folder of this name."""
    path = os.fspath(path)
    with file_errors.clear_errors(path):
        return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_folder(path) -> bool:
    """Returns whether there is a folder of this name."""
    path = os.fspath(path)
    with file_errors.clear_errors(path):
        return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def make_folders(path) -> None:
    """Makes a folder and those above it; one that exists is left as it is.

    Raises:
        OSError: it cannot be made, or a file of that name is in the way.
    """
    path = os.fspath(path)
    with file_errors.clear_errors(path):
        if is_remote(path):
            _gfile().makedirs(path)
        else:
            _make_local_folders(path)


def remove(path) -> None:
    """Removes one file.

    Raises:
        OSError: there is none, or it may not be removed.
    """
    path = os.fspath(path)
    with file_errors.clear_errors(path):
        _gfile().remove(path) if is_remote(path) else os.remove(path)


def rename(source, target) -> None:
    """Gives a file another name; a file that has that name is replaced.

    Raises:
        OSError: there is no such file, or it may not be renamed.
    """
    source, target = os.fspath(source), os.fspath(target)
    with file_errors.clear_errors(source):
        if is_remote(source) or is_remote(target):
            _gfile().rename(source, target, overwrite=True)
        else:
            os.replace(source, target)


def size(path) -> int:
    """Returns the size of a file in bytes.

    Raises:
        OSError: there is no such file.
    """
    path = os.fspath(path)
    with file_errors.clear_errors(path):
        return _gfile().stat(path).length if is_remote(path) else os.path.getsize(path)


def list_folder(path) -> list[str]:
    """Returns the sorted names, without the folder's own, of what is in a folder.

    Raises:
        OSError: there is no such folder.
    """
    path = os.fspath(path)
    with file_errors.clear_errors(path):
        names = _gfile().listdir(path) if is_remote(path) else os.listdir(path)
    return sorted(name.rstrip("/") for name in names)


@contextlib.contextmanager
def complete_or_absent(path, mode="w"):
    """Yields a file object; the name appears only when the block ends well.

    Args:
        path: the final name. Folders above it are made.
        mode: "w" or "wb".

    Raises:
        OSError: nothing can be written there.
    """
    path = os.fspath(path)
    with complete_or_absent_path(path) as temporary:
        with file_errors.clear_errors(path):
            if is_remote(temporary):
                file = open_file(temporary, mode)
            else:
                file = file_errors.open_local(temporary, mode, path)
        # The block's own errors stay as they are; those of `file` name it.
        with file:
            yield file
            with file_errors.clear_errors(path):
                file.flush()
                if os.path.isfile(temporary):
                    os.fsync(file.fileno())


def check_can_be_made(path) -> None:
    """Finds out, before long work, whether a file or folder can be made.

    Args:
        path: what is to be made. Folders above it are made. A remote name is not
            tried: object stores have no folders, and may keep what is removed.

    Raises:
        OSError: it cannot be made.
    """
    path = os.fspath(path)
    if is_remote(path):
        return
    path = os.path.realpath(path)
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        return
    make_folders(os.path.dirname(path))
    probe = _temporary_beside(path)
    with file_errors.clear_errors(path):
        file_errors.open_local(probe, "wb", path).close()
        os.remove(probe)


@contextlib.contextmanager
def complete_or_absent_path(path):
    """Yields a temporary path in the same folder, for libraries that want a path.

    The file written there gets its final name when the block ends well, and is removed
    when it does not. Its name starts with a dot, so no glob meets it meanwhile.

    Args:
        path: the final name. Folders above it are made. A device or a pipe, such as
            /dev/null, is written as it is: renaming would replace it.

    Raises:
        OSError: nothing can be written there.
    """
    path = os.fspath(path)
    if is_folder(path):
        raise IsADirectoryError(f"{path} is a folder; expected the name of a file.")
    if not is_remote(path):
        path = os.path.realpath(path)  # A link stays one: its target is replaced.
        if os.path.exists(path) and not os.path.isfile(path):
            yield path
            return
    make_folders(os.path.dirname(path))
    temporary = _temporary_beside(path)
    try:
        yield temporary
        rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(temporary)
        raise


def expand(patterns: str | Sequence[str]) -> list[str]:
    """Returns the files that names and globs stand for.

    Args:
        patterns: a comma list, or a sequence of names and globs.

    Returns:
        Paths in the order of the patterns, the matches of one glob sorted. Folders and
        side files (`*.index.npz`) never match a glob.

    Raises:
        FileNotFoundError: a pattern stands for no file.
        ValueError: there is no pattern.
    """
    if isinstance(patterns, str):
        patterns = patterns.split(",")
    patterns = [text for text in (os.fspath(p).strip() for p in patterns) if text]
    if not patterns:
        raise ValueError("Expected at least one file name, got none.")
    return [path for pattern in patterns for path in _matches(pattern)]


def read_lines(path) -> Iterator[str]:
    """Yields the lines of a UTF-8 text file without their line ends.

    Args:
        path: the file. Lines end with "\\n" or "\\r\\n"; a byte order mark at its
            start is dropped.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not UTF-8; the message has file and line.
    """
    with open_file(path, "rb") as file, file_errors.clear_errors(os.fspath(path)):
        yield from file_errors.decoded_lines(file, path)


def read_stdin_lines() -> Iterator[str]:
    """Yields the lines of standard input as `read_lines` does those of a file.

    Raises:
        ValueError: a line is not UTF-8; the message has its number.
    """
    # What stands in for sys.stdin in a notebook or a test may have text alone.
    return file_errors.decoded_lines(
        getattr(sys.stdin, "buffer", sys.stdin), "standard input"
    )


def _temporary_beside(path):
    name = os.path.basename(path)
    return f"{path.removesuffix(name)}.{name}.{uuid.uuid4().hex}.partial"


def _matches(pattern):
    if exists(pattern):
        return [pattern]
    if not glob.has_magic(pattern):
        raise FileNotFoundError(f"There is no file {pattern}.")
    with file_errors.clear_errors(pattern):
        paths = _gfile().glob(pattern) if is_remote(pattern) else glob.glob(pattern)
    paths = [path for path in sorted(paths) if not path.endswith(SIDE_FILE_SUFFIX)]
    paths = [path for path in paths if not is_folder(path)]
    if not paths:
        raise FileNotFoundError(f"No file matches {pattern}.")
    return paths


def _make_local_folders(path):
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(path) from None
    except FileNotFoundError as error:  # For example below /proc.
        # Without its number, which would make it a FileNotFoundError again.
        raise OSError(f"the folder cannot be made: {error.strerror}") from None


def _gfile():
    import tensorflow as tf

    return tf.io.gfile
