"""Locks on outputs: if two processes would write the same one, the second stops.

A lock is a kernel lock (filelock, flock) on a small hidden file, in or beside the
output. The kernel releases it when the process ends for any reason, and a clean end
also removes the file. The file of a killed process remains, without effect, until the
next command that writes the same output.

* NFS: clients since Linux 2.6.12 pass the lock to the server, so it also holds between
  machines. It does not if the server has no lock service, or if the folder is mounted
  with `nolock` or `local_lock=flock`.
* A file system without locks: a warning is logged, and nothing is locked.
* Remote paths such as gs://: nothing is locked. Object stores have no locks.
"""

import contextlib
import errno
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from collections.abc import Iterator

import filelock

from bert_tf import files

logger = logging.getLogger(__name__)

# The file in a locked folder.
LOCK_FILE = ".lock"
# A process that was killed may take a moment to end.
_GRACE_SECONDS = 2.0
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


@contextlib.contextmanager
def output_folder(path: files.AnyPath) -> Iterator[None]:
    """Locks a folder during the block, and removes leftovers of killed processes.

    Args:
        path: the folder. It is created if needed, and removed again if the block leaves
            it empty.

    Raises:
        OSError: another process has locked the folder, or it cannot be written.
    """
    path = os.fspath(path)
    if files.is_remote(path):
        yield
        return
    with _locked(path, LOCK_FILE, path, "output_dir"):
        files.remove_leftovers(path)
        yield


@contextlib.contextmanager
def output_file(
    path: files.AnyPath, *, flag: str = "output_file", waits: bool = False
) -> Iterator[None]:
    """Locks a file during the block, and removes what killed writers left of it.

    The lock file is beside it. A folder that is replaced as a whole, such as an export,
    is locked like a file.

    Args:
        path: the file. Missing parent folders are created. Devices and pipes are not
            locked.
        flag: name of the flag that gave the path, for the error message.
        waits: whether to wait while another process has locked the file, instead of
            raising an error.

    Raises:
        OSError: another process has locked the file, or its folder cannot be written.
    """
    path = os.fspath(path)
    real = path if files.is_remote(path) else os.path.realpath(path)
    is_special = os.path.exists(real) and not (
        os.path.isfile(real) or os.path.isdir(real)
    )
    if files.is_remote(path) or is_special:
        yield
        return
    folder, name = os.path.split(real)
    with _locked(folder, f".{name}{LOCK_FILE}", path, flag, waits=waits):
        files.remove_leftovers(folder, name)
        yield


@contextlib.contextmanager
def complete_or_absent_folder(
    path: files.AnyPath,
    *,
    file: str | None = None,
    completes: Callable[[str], bool] = lambda name: False,
) -> Iterator[str]:
    """Yields an empty local folder, which becomes `path` when the block succeeds.

    Call it in a block of `output_file`, which removes what a killed process left.

    Args:
        path: a new or empty folder.
        file: the name of a file in the folder that becomes `path` instead of the
            folder; None: the folder.
        completes: whether a file, by its path in the folder, is one that others make
            useful. Object stores cannot rename, so files are copied to them, these
            last.

    Raises:
        OSError: a file cannot be written, or the folder was filled meanwhile.
    """
    path = os.fspath(path)
    if files.is_remote(path):
        with tempfile.TemporaryDirectory() as folder:
            yield folder
            names = sorted(_names_below(folder), key=lambda n: (completes(n), n))
            for name in names if file is None else [file]:
                target = path if file else f"{path}/{name}"
                with (
                    open(os.path.join(folder, name), "rb") as source,
                    files.complete_or_absent(target, "wb") as copy,
                ):
                    shutil.copyfileobj(source, copy, 1 << 24)
        return
    path = os.path.realpath(path)  # A link to a folder stays in place.
    folder = files.temporary_path(path)
    try:
        files.make_folders(folder)
        yield folder
        for name in _names_below(folder):
            with open(os.path.join(folder, name), "rb") as source:
                os.fsync(source.fileno())
        if files.is_folder(path):
            os.rmdir(path)
        files.rename(os.path.join(folder, file) if file else folder, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _names_below(folder: str) -> list[str]:
    """Returns the paths of all files below a folder, relative to it."""
    return [
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, names in os.walk(folder)
        for name in names
    ]


@contextlib.contextmanager
def _locked(
    folder: str, name: str, path: str, flag: str, *, waits: bool = False
) -> Iterator[None]:
    created = _missing_folders(folder)
    files.make_folders(folder)
    lock_file = os.path.join(folder, name)
    lock = filelock.FileLock(lock_file, fallback_to_soft=False)
    try:
        _acquire(lock, path, flag, waits)
        try:
            yield
        finally:
            # Before the release: later, the file may be another process's.
            with contextlib.suppress(OSError):
                os.remove(lock_file)
            lock.release()
    finally:
        for parent in created:
            with contextlib.suppress(OSError):  # It is not empty.
                os.rmdir(parent)


def _acquire(lock: filelock.BaseFileLock, path: str, flag: str, waits: bool) -> None:
    try:
        try:
            lock.acquire(timeout=0 if waits else _GRACE_SECONDS)
        except filelock.Timeout:
            holder = _holder(lock.lock_file)
            if not waits and not os.path.exists(lock.lock_file):  # Such as in /proc.
                raise OSError(f"{path}: cannot be written.") from None
            if not waits:
                raise OSError(
                    f"{path} is in use: {holder} is writing to it. Wait until it ends, "
                    f"or stop it, or choose another --{flag}."
                ) from None
            logger.info("Waiting for %s, which writes %s.", holder, path)
            lock.acquire()
    except OSError as error:
        if error.errno in _NO_LOCKS:
            logger.warning(
                "%s is on a file system without locks; make sure that no other process "
                "writes there.",
                path,
            )
            return
        if error.errno is None:
            raise
        if isinstance(error, PermissionError):
            raise PermissionError(f"{path}: permission denied.") from None
        raise OSError(f"{path}: cannot be written: {error.strerror}.") from None
    since = time.strftime("%Y-%m-%d %H:%M:%S %z").strip()
    with contextlib.suppress(OSError):  # The lock also works on a full disk.
        with open(lock.lock_file, "w", encoding="utf-8") as file:
            host = socket.gethostname()
            file.write(f"process {os.getpid()} on {host} (since {since})")


def _holder(lock_file: str) -> str:
    """Returns a description of the process that holds a lock."""
    with contextlib.suppress(OSError, ValueError):
        with open(lock_file, encoding="utf-8") as file:
            return file.read() or "another process"
    return "another process"


def _missing_folders(path: str) -> list[str]:
    """Returns a folder and its parents if they do not exist, deepest first."""
    missing = []
    path = os.path.abspath(path)
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing
