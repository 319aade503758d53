"""Locks on outputs: if two processes would write the same one, the second stops.

A lock is a kernel lock (flock) on a small hidden file, in or beside the output. The
kernel releases it when the process ends for any reason, and a clean end also removes
the file. The file of a killed process remains, without effect, until the next command
that writes the same output.

* NFS: clients since Linux 2.6.12 pass the lock to the server, so it also holds between
  machines. It does not if the server has no lock service, or if the folder is mounted
  with `nolock` or `local_lock=flock`.
* A file system without locks: a warning is logged, and nothing is locked.
* Remote paths such as gs://: nothing is locked. Object stores have no locks.
"""

import contextlib
import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from typing import IO
from typing import Any

from bert_tf import files

logger = logging.getLogger(__name__)

# The file in a locked folder.
LOCK_FILE = ".lock"
# After a process is killed, its worker processes may hold the lock a moment longer.
_GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.1


@contextlib.contextmanager
def output_folder(path: files.AnyPath, *, flag: str = "output_dir") -> Iterator[None]:
    """Locks a folder during the block, and removes leftovers of killed processes.

    Args:
        path: the folder. It is created if needed, and removed again if the block leaves
            it empty.
        flag: name of the flag that gave the path, for the error message.

    Raises:
        OSError: another process has locked the folder, or it cannot be written.
    """
    path = os.fspath(path)
    if files.is_remote(path):
        yield
        return
    new = _missing_folders(path)
    files.make_folders(path)
    try:
        with _locked(os.path.join(path, LOCK_FILE), path, flag):
            files.remove_leftovers_in(path)
            yield
    finally:
        for folder in new:
            with contextlib.suppress(OSError):  # It is not empty.
                os.rmdir(folder)


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
    new = _missing_folders(folder)
    files.make_folders(folder)
    try:
        lock_file = os.path.join(folder, f".{name}{LOCK_FILE}")
        with _locked(lock_file, path, flag, waits=waits):
            files.remove_leftovers_of(real)
            yield
    finally:
        for parent in new:
            with contextlib.suppress(OSError):
                os.rmdir(parent)


@contextlib.contextmanager
def _locked(
    lock_file: str, path: str, flag: str, *, waits: bool = False
) -> Iterator[None]:
    file = _acquired(lock_file, path, flag, waits)
    with file:
        try:
            yield
        finally:
            # Before the lock is released: later, the file may be another process's.
            with contextlib.suppress(OSError):
                os.remove(lock_file)


def _acquired(lock_file: str, path: str, flag: str, waits: bool) -> IO[Any]:
    """Returns the lock file, open and locked."""
    deadline = time.monotonic() + _GRACE_SECONDS
    is_logged = False
    while True:
        # Not "w": this would erase what the holder of the lock wrote.
        file = _opened(lock_file, path)
        is_locked = files.try_lock(file)
        if is_locked is None:
            logger.warning(
                "%s is on a file system without locks; make sure that no other process "
                "writes there.",
                path,
            )
            return file
        # The previous holder may have removed the file in the meantime.
        if is_locked and _is_still_there(file, lock_file):
            _describe_this_process(file)
            return file
        file.close()
        if is_locked:
            continue
        if waits and not is_logged:
            logger.info("Waiting for %s, which writes %s.", _holder(lock_file), path)
            is_logged = True
        if not waits and time.monotonic() > deadline:
            raise OSError(
                f"{path} is in use: {_holder(lock_file)} is writing to it. Wait until "
                f"it ends, or stop it, or choose another --{flag}."
            )
        time.sleep(_POLL_SECONDS)


def _opened(lock_file: str, path: str) -> IO[Any]:
    try:
        return files.open_file(lock_file, "ab")
    except PermissionError:
        raise PermissionError(f"{path}: permission denied.") from None
    except OSError as error:
        reason = str(error).removeprefix(f"{lock_file}: ")
        raise OSError(f"{path}: {reason}") from None


def _is_still_there(file: IO[Any], lock_file: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(lock_file))
    except OSError:  # It is gone; NFS reports a stale file.
        return False


def _describe_this_process(file: IO[Any]) -> None:
    """Writes into a lock file who holds it, for the messages of other processes."""
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }
    with contextlib.suppress(OSError):  # The lock also works on a full disk.
        os.truncate(file.fileno(), 0)
        os.write(file.fileno(), json.dumps(holder).encode())


def _holder(lock_file: str) -> str:
    """Returns a description of the process that holds a lock."""
    try:
        with files.open_file(lock_file) as file:
            holder = json.load(file)
        return (
            f"process {holder['pid']} on {holder['host']} "
            f"(since {holder['since'].strip()})"
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "another process"


def _missing_folders(path: str) -> list[str]:
    """Returns a folder and its parents if they do not exist, deepest first."""
    missing = []
    path = os.path.abspath(path)
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing
