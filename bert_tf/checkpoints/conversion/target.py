"""Puts a converted checkpoint at its target: complete, or not at all.

It is written into a temporary folder beside the target and renamed after it has been
checked. The lock of the target removes the folder of a killed conversion.
"""

import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator

from bert_tf import files

_CHECKPOINT_SUFFIX = ".ckpt"
_KERAS_SUFFIXES = (".keras", ".weights.h5")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A folder, a file, or a prefix that several files in a folder share."""

    path: str  # As the user gave it.
    is_folder: bool = False
    is_prefix: bool = False

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)

    def inside(self, folder: str) -> str:
        """Returns the path of the checkpoint while it is in a temporary folder."""
        return folder if self.is_folder else os.path.join(folder, self.name)


def target_of(path: str | os.PathLike[str], target_format: str) -> Target:
    """Returns the `Target` that a path means for a format.

    Raises:
        ValueError: the path lacks the suffix of the format's files.
    """
    path = os.fspath(path)
    path = path.rstrip("/") or path[:1]
    if target_format == "keras" and not path.endswith(_KERAS_SUFFIXES):
        raise ValueError(
            f"--target={path}: expected a name that ends with "
            f"{' or '.join(_KERAS_SUFFIXES)}."
        )
    is_prefix = target_format == "bert" and path.endswith(_CHECKPOINT_SUFFIX)
    is_folder = target_format != "keras" and not is_prefix
    return Target(path=path, is_folder=is_folder, is_prefix=is_prefix)


def check(target: Target) -> None:
    """Checks, before long work, that a target does not exist.

    Raises:
        OSError: the target cannot be examined.
        ValueError: it would replace something.
    """
    is_folder = files.is_folder(target.path)
    if is_folder and not target.is_folder:
        raise ValueError(f"{target.path} is a folder; expected a file name.")
    is_there = files.exists(target.path) or files.exists(f"{target.path}.index")
    if is_there and not (is_folder and not files.list_folder(target.path)):
        raise ValueError(f"{target.path} already exists; choose another --target.")


@contextlib.contextmanager
def complete_or_absent(target: Target) -> Iterator[str]:
    """Yields an empty local folder; its files move to the target when the block ends.

    Raises:
        OSError: they cannot be moved.
        ValueError: they would replace other files.
    """
    if files.is_remote(target.path):
        with tempfile.TemporaryDirectory() as folder:
            yield folder
            _copy(folder, target)
        return
    # A link to a folder stays in place.
    resolve = os.path.realpath if target.is_folder else os.path.abspath
    path = resolve(target.path)
    folder = files.temporary_path(path)
    try:
        files.make_folders(folder)
        yield folder
        for name in _names_in(folder):
            with open(os.path.join(folder, name), "rb") as file:
                os.fsync(file.fileno())
        if target.is_folder:
            files.rename(folder, path)
        else:
            _place_files(folder, os.path.dirname(path), target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _names_in(folder: str) -> list[str]:
    """Returns the paths of all files below a folder, relative to it."""
    return [
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, names in os.walk(folder)
        for name in names
    ]


def _place_files(folder: str, parent: str, target: Target) -> None:
    """Moves files into a folder; the one that completes the checkpoint comes last."""
    last = (target.name, f"{target.name}.index")
    names = sorted(files.list_folder(folder), key=lambda name: (name in last, name))
    for name in names:
        there = os.path.join(parent, name)
        if files.exists(there) and not _is_same(there, os.path.join(folder, name)):
            raise ValueError(
                f"{there} already exists and belongs to another checkpoint; pass a "
                "--target in another folder."
            )
    for name in names:
        files.rename(os.path.join(folder, name), os.path.join(parent, name))


def _is_same(path: str, other: str) -> bool:
    if files.size(path) != files.size(other):
        return False
    with files.open_file(path, "rb") as file, files.open_file(other, "rb") as second:
        return file.read() == second.read()


def _copy(folder: str, target: Target) -> None:
    """Copies to a store without renaming; what completes the checkpoint comes last."""
    base = target.path if target.is_folder else os.path.dirname(target.path)
    names = _names_in(folder)
    last = {n for n in names if n.endswith(".index") or n == "config.json"}
    for name in sorted(names, key=lambda name: (name in last, name)):
        with (
            open(os.path.join(folder, name), "rb") as file,
            files.complete_or_absent(f"{base}/{name}", "wb") as copy,
        ):
            shutil.copyfileobj(file, copy)
