"""A folder for the files of finished tasks, so that the same command resumes a run.

The folder has a fingerprint of the command and stays until all tasks are finished.
"""

import contextlib
import os
import re

from bert_tf import files

_FINGERPRINT = "fingerprint"  # The file that says which command the work belongs to.
# What tasks may write into the folder: files with the number of a task.
_WORK = re.compile(r"\d{6,}\.(?:json|part|txt)")


def belongs_to(fingerprint: str, folder: str) -> bool:
    """Returns whether the folder holds the finished work of the same command."""
    path = os.path.join(folder, _FINGERPRINT)
    if not files.exists(path):
        return False
    with files.open_file(path, "rb") as file:
        return file.read() == fingerprint.encode()


def start(fingerprint: str, folder: str) -> None:
    """Creates the folder for the finished work of a command; removes other work.

    Raises:
        OSError: a file cannot be read, written or removed.
    """
    if belongs_to(fingerprint, folder):
        return
    remove(folder)
    files.make_folders(folder)
    with files.complete_or_absent(os.path.join(folder, _FINGERPRINT)) as file:
        file.write(fingerprint)


def remove(folder: str) -> None:
    """Removes finished work, and its folder if it contains nothing else.

    Raises:
        OSError: a file cannot be removed.
    """
    if not files.is_folder(folder):
        return
    # The fingerprint first: work without it is never used again.
    names = files.list_folder(folder)
    for name in sorted(names, key=lambda name: files.final_name(name) != _FINGERPRINT):
        final_name = files.final_name(name)
        if final_name == _FINGERPRINT or _WORK.fullmatch(final_name):
            files.remove(os.path.join(folder, name))
    if not files.is_remote(folder):
        with contextlib.suppress(OSError):  # It contains other files.
            os.rmdir(folder)
