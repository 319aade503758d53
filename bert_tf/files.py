"""File access: plain Python for local paths, tf.io.gfile for paths with "://".

All errors are an `OSError` with one sentence that names the file. A file written with
`complete_or_absent` is complete under its final name or does not exist, even if the
process is killed half-way.
"""

import concurrent.futures
import contextlib
import errno
import glob
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import IO
from typing import Any

from bert_tf import file_errors
from bert_tf import json_values

AnyPath = str | os.PathLike[str]
REQUESTS_AT_ONCE = 16  # To remote file systems. Each takes tens of milliseconds.
# Suffix of the files beside TFRecord files. Globs such as `tf_examples*` skip them.
SIDE_FILE_SUFFIX = ".index.npz"
clear_errors = file_errors.clear_errors
RAISED = file_errors.RAISED  # Where a file cannot be read or written.
# Errors that a disk can cause.
_WRITE_ERRORS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EIO,
)
# Starts the name of a model on Hugging Face's hub, which is not a path.
HUB_PREFIX = "hf://"
# The name of an unfinished file or folder; see `temporary_path`. TensorFlow puts the
# suffixes of a checkpoint's files after it.
_PARTIAL = ".partial"
_TEMPORARY = re.compile(rf"(?s)\.(.+)\.[0-9a-f]{{32}}{re.escape(_PARTIAL)}(\..+)?")


def is_remote(path: AnyPath) -> bool:
    """Returns whether a path is on one of TensorFlow's file systems, such as gs://."""
    return "://" in os.fspath(path)


def open_file(path: AnyPath, mode: str = "r") -> IO[Any]:
    """Opens a local file, or one that TensorFlow supports (`gs://bucket/name`).

    Text is UTF-8, and "\\n" is the only line end.

    Args:
        path: the file.
        mode: as for Python's `open`.
    """
    path = os.fspath(path)
    with clear_errors(path):
        if is_remote(path):
            if "r" in mode and not _gfile().exists(path):
                raise FileNotFoundError(path)
            return _gfile().GFile(path, mode)
        return file_errors.open_local(path, mode, path)


def read_range(path: AnyPath, start: int, num_bytes: int) -> bytes:
    """Returns `num_bytes` bytes of a file from `start`; fewer at its end."""
    with clear_errors(path):
        # Not `open_file`, which asks whether a remote file exists: another request.
        opened = _gfile().GFile if is_remote(path) else open
        with opened(path, "rb") as file:
            file.seek(start)
            return file.read(num_bytes)


def map_paths(function: Callable[..., Any], *arguments: Sequence) -> list[Any]:
    """Returns `list(map(function, *arguments))`, in threads if the paths are remote.

    The first of `arguments` is a sequence of paths. The function must be thread-safe.
    """
    if len(arguments[0]) < 2 or not is_remote(arguments[0][0]):
        return list(map(function, *arguments))
    with concurrent.futures.ThreadPoolExecutor(REQUESTS_AT_ONCE) as threads:
        return list(threads.map(function, *arguments))


def exists(path: AnyPath) -> bool:
    """Returns whether a file or folder exists."""
    path = os.fspath(path)
    if path.startswith(HUB_PREFIX):
        return False
    with clear_errors(path):
        return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_folder(path: AnyPath) -> bool:
    """Returns whether a path is an existing folder."""
    path = os.fspath(path)
    if path.startswith(HUB_PREFIX):
        return False
    with clear_errors(path):
        return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def make_folders(path: AnyPath) -> None:
    """Creates a folder and its parents if they do not exist."""
    with clear_errors(path):
        _gfile().makedirs(path) if is_remote(path) else _make_local_folders(path)


def remove(path: AnyPath) -> None:
    """Removes one file."""
    with clear_errors(path):
        _gfile().remove(path) if is_remote(path) else os.remove(path)


def rename(source: AnyPath, target: AnyPath) -> None:
    """Renames a file and replaces an existing target."""
    with clear_errors(source):
        if is_remote(source) or is_remote(target):
            _gfile().rename(source, target, overwrite=True)
        else:
            os.replace(source, target)


def size(path: AnyPath) -> int:
    """Returns the size of a file in bytes."""
    return size_and_time(path)[0]


def size_and_time(path: AnyPath) -> tuple[int, int]:
    """Returns a file's size in bytes, and the time of its last change in ns."""
    with clear_errors(path):
        if is_remote(path):
            status = _gfile().stat(path)
            return status.length, status.mtime_nsec
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns


def list_folder(path: AnyPath) -> list[str]:
    """Returns the names of a folder's entries, sorted and without the folder's name."""
    with clear_errors(path):
        names = _gfile().listdir(path) if is_remote(path) else os.listdir(path)
    return sorted(name.rstrip("/") for name in names)


@contextlib.contextmanager
def complete_or_absent(path: AnyPath, mode: str = "w") -> Iterator[IO[Any]]:
    """Yields a file object. The file appears under its name when the block succeeds.

    Until then it has another name in the same folder, which starts with a dot, so that
    globs do not match it. It is removed if the block fails. If the process is killed,
    `remove_leftovers` removes it later.

    Args:
        path: the final name. Missing folders are created. A device or a pipe, such as
            /dev/null, is written directly, because renaming would replace it.
        mode: "w" or "wb".
    """
    path = os.fspath(path)
    if is_folder(path):
        raise IsADirectoryError(f"{path} is a folder; expected a file name.")
    # Replaces a link's target, not the link.
    target = path if is_remote(path) else os.path.realpath(path)
    if not is_remote(path) and os.path.exists(target) and not os.path.isfile(target):
        with _synced(target, mode, path) as file:
            yield file
        return
    make_folders(os.path.dirname(target))
    temporary = temporary_path(target)
    try:
        with _kept_from_removal(temporary, path):
            with _synced(temporary, mode, path) as file:
                yield file
            rename(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(temporary)
        raise


@contextlib.contextmanager
def _synced(path: str, mode: str, shown_path: str) -> Iterator[IO[Any]]:
    """Yields a file to write, which is on the disk when the block succeeds.

    Errors raised by the block pass through unchanged; those of the file name it.
    """
    with clear_errors(shown_path):
        if is_remote(path):
            file = open_file(path, mode)
        else:
            file = file_errors.open_local(path, mode, shown_path)
    with file:
        yield file
        with clear_errors(shown_path):
            file.flush()
            if os.path.isfile(path):
                os.fsync(file.fileno())


@contextlib.contextmanager
def _kept_from_removal(temporary: str, path: str) -> Iterator[None]:
    """Locks a temporary file, so that it is not mistaken for a leftover."""
    if is_remote(temporary) or sys.platform == "win32":
        yield
        return
    with clear_errors(path):
        file = file_errors.open_local(temporary, "wb", path)
    with file:
        _try_lock(file)
        yield


def temporary_path(path: AnyPath) -> str:
    """Returns a new path beside another one, for writing it before it is renamed.

    If the process is killed, `remove_leftovers` removes it later.
    """
    folder, name = os.path.split(os.fspath(path))
    return os.path.join(folder, f".{name}.{uuid.uuid4().hex}{_PARTIAL}")


def final_name(name: str) -> str:
    """Returns the name that a temporary file will get; for other files, their own.

    Args:
        name: of a file, without folders.
    """
    match = _TEMPORARY.fullmatch(name)
    return match[1] + (match[2] or "") if match else name


def remove_leftovers(folder: AnyPath, name: str | None = None) -> None:
    """Removes what killed processes left in a folder.

    Files that another process is writing at the moment are kept: they are locked. What
    cannot be locked is left alone: remote files, and the files of a checkpoint, which
    TensorFlow writes.

    Args:
        folder: the folder.
        name: remove only the temporary files and folders that would have become this
            name. No other process may be writing a folder of this name. None: remove
            all temporary files, but no folders.
    """
    folder = os.fspath(folder) or os.curdir
    if is_remote(folder) or not os.path.isdir(folder):
        return
    for entry in list_folder(folder):
        path, final = os.path.join(folder, entry), final_name(entry)
        if not entry.endswith(_PARTIAL) or entry == final or name not in (None, final):
            continue
        if os.path.isfile(path):
            with contextlib.suppress(OSError), open(path, "ab") as file:
                if _try_lock(file):
                    os.remove(path)
        elif name is not None:
            shutil.rmtree(path, ignore_errors=True)


def reason_of(error: BaseException) -> str:
    """Returns why a write failed: the system's own message if a library quotes it.

    TensorFlow, HDF5 and others wrap "No space left on device" into their internals.
    """
    text = str(getattr(error, "message", None) or error)
    for number in _WRITE_ERRORS:
        if os.strerror(number).lower() in text.lower():
            return os.strerror(number)
    return text.split("\n")[0].split(" [Op:")[0].rstrip(".")[:200]


def _try_lock(file: IO[Any]) -> bool:
    """Locks an open local file until it is closed; False if that is not possible."""
    import filelock

    try:
        return filelock.lock_descriptor(file.fileno(), blocking=False)
    except OSError:  # The file system has no locks.
        return False


def expand(patterns: str | Sequence[str]) -> list[str]:
    """Returns the files that match names and globs.

    Args:
        patterns: a comma list, or a sequence of names and globs.

    Returns:
        Paths in the order of the patterns; the matches of one glob are sorted. Folders
        and side files (`*.index.npz`) never match a glob.

    Raises:
        FileNotFoundError: a pattern matches no file.
        ValueError: there are no patterns.
    """
    if isinstance(patterns, str):
        patterns = patterns.split(",")
    patterns = [text for text in (os.fspath(p).strip() for p in patterns) if text]
    if not patterns:
        raise ValueError("Expected at least one file name, got none.")
    return [path for pattern in patterns for path in _matches(pattern)]


def read_lines(path: AnyPath) -> Iterator[str]:
    """Yields the lines of a UTF-8 text file without their line ends.

    Lines end with "\\n" or "\\r\\n". A byte order mark is dropped. A file that gzip
    or bzip2 compressed is decompressed, whatever its name.

    Raises:
        ValueError: a line is not UTF-8, or the compressed data are damaged. The message
            names the file and the line.
    """
    with (
        open_file(path, "rb") as file,
        clear_errors(path),
        file_errors.unpacked(file, path) as lines,
    ):
        yield from file_errors.decoded_lines(lines, path)


def read_json(
    path: AnyPath, *, advice: str = "correct or remove it", shape: Any = None
) -> dict[str, Any]:
    """Returns the object in a JSON file.

    Args:
        path: the file.
        advice: what to do about a damaged file.
        shape: what the object must contain; see `json_values.unexpected`.

    Raises:
        OSError: there is no such file.
        ValueError: it is not JSON, not an object, or does not have the shape; the
            message ends with `advice`.
    """
    with open_file(path, "rb") as file:
        values = parse_json(file.read(), path, advice=advice)
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} contains a JSON {type(values).__name__}, expected an object; "
            f"{advice}."
        )
    mismatch = json_values.unexpected(values, shape or {})
    if mismatch is not None:
        place, value = mismatch
        raise ValueError(
            f"{path} has an unexpected value of {place}: {value!r:.80}; {advice}."
        )
    return values


def parse_json(
    text: str | bytes, source: AnyPath, *, advice: str = "correct or remove it"
) -> Any:
    """Returns the value of a JSON text.

    Args:
        text: the text, or its bytes.
        source: where it comes from, for the message.
        advice: what to do about a damaged text.

    Raises:
        ValueError: it is not JSON, not UTF-8, or nested too deeply for Python.
    """
    try:
        return json_values.parse(text)
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise ValueError(f"{source} is not JSON: {reason}; {advice}.")


def _matches(pattern: str) -> list[str]:
    if exists(pattern):
        return [pattern]
    if not glob.has_magic(pattern):
        raise FileNotFoundError(f"No such file: {pattern}.")
    with clear_errors(pattern):
        paths = _gfile().glob(pattern) if is_remote(pattern) else glob.glob(pattern)
    paths = [path for path in sorted(paths) if not path.endswith(SIDE_FILE_SUFFIX)]
    paths = [path for path in paths if not is_folder(path)]
    if not paths:
        raise FileNotFoundError(f"No file matches {pattern}.")
    return paths


def _make_local_folders(path: AnyPath) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(os.fspath(path)) from None
    except FileNotFoundError as error:  # For example below /proc.
        # An errno would turn the OSError into a FileNotFoundError again.
        raise OSError(f"the folder cannot be created: {error.strerror}") from None


def _gfile() -> Any:
    import tensorflow as tf

    return tf.io.gfile


class Unchanged:
    """Size and time of files, to notice that they change while a run reads them."""

    def __init__(self, paths: Sequence[str]):
        facts = map_paths(size_and_time, paths)
        self._facts = dict(zip(paths, facts, strict=True))

    def check(self, paths: Sequence[str] | None = None) -> None:
        """Raises a ValueError if a file, or one of `paths`, has changed or is gone."""
        paths = list(self._facts if paths is None else paths)
        now = map_paths(_facts_or_none, paths)
        for path, facts in zip(paths, now, strict=True):
            if facts != self._facts[path]:
                raise ValueError(
                    f"{path} has changed since training started. Put the old file back "
                    "and start the same command again, or start a new run."
                )


def _facts_or_none(path):
    try:
        return size_and_time(path)
    except FileNotFoundError:
        return None
