"""Puts a converted checkpoint at its target: complete, or not at all.

It is written into a folder beside the target, whose name starts with a dot and ends in
`.partial`, and renamed after it has been checked. Such folders of a killed conversion
are removed by the next conversion to the same target.
"""

import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator

from bert_tf import files

# Ends the name of the earlier folder while the new one takes its place.
_REPLACED = ".replaced"
_CHECKPOINT_SUFFIX = ".ckpt"
_KERAS_SUFFIXES = (".keras", ".weights.h5")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A folder, a file, or a prefix that several files in a folder share."""

    path: str  # As the user gave it.
    is_folder: bool = False
    is_prefix: bool = False
    overwrite: bool = False  # Whether an existing checkpoint is replaced.

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)

    def inside(self, folder: str) -> str:
        """Returns the path of the checkpoint while it is in a temporary folder."""
        return folder if self.is_folder else os.path.join(folder, self.name)


def target_of(
    path: str | os.PathLike[str], target_format: str, *, overwrite: bool = False
) -> Target:
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
    return Target(
        path=path,
        is_folder=target_format != "keras" and not is_prefix,
        is_prefix=is_prefix,
        overwrite=overwrite,
    )


def check(target: Target, source_path: str) -> None:
    """Checks, before long work, whether a target can be written.

    Leftovers of killed conversions to it are removed first.

    Raises:
        OSError: the target cannot be written.
        ValueError: it would replace something, or contains the source.
    """
    if _is_within(source_path, target):
        raise ValueError(
            f"{target.path} contains the source {source_path}; choose another --target."
        )
    if not files.is_remote(target.path):
        if os.path.islink(target.path) and not os.path.exists(target.path):
            raise ValueError(
                f"{target.path} is a link to {os.readlink(target.path)}, which does "
                "not exist; remove the link, or choose another --target."
            )
        _remove_leftovers(_own_path(target))
    if not target.is_folder and files.is_folder(target.path):
        raise ValueError(f"{target.path} is a folder; expected a file name.")
    if target.is_folder and files.exists(target.path):
        if not files.is_folder(target.path):
            raise ValueError(f"{target.path} is a file; expected a folder.")
        if files.list_folder(target.path):
            _check_overwrite(target)
    elif files.exists(target.path) or files.exists(f"{target.path}.index"):
        _check_overwrite(target)


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
    path = _own_path(target)
    folder = files.temporary_path(path)
    try:
        files.make_folders(folder)
        yield folder
        _synchronize(folder)
        if target.is_folder:
            _place_folder(folder, path, target)
        else:
            _place_files(folder, os.path.dirname(path), target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_overwrite(target: Target) -> None:
    if not target.overwrite:
        raise ValueError(
            f"{target.path} already exists; choose another --target, or --overwrite."
        )


def _is_within(source_path: str, target: Target) -> bool:
    """Returns whether writing the target would touch the source."""
    if files.is_remote(source_path) or files.is_remote(target.path):
        return source_path == target.path
    source = os.path.realpath(source_path)
    path = os.path.realpath(target.path)
    return source == path or (target.is_folder and source.startswith(f"{path}{os.sep}"))


def _own_path(target: Target) -> str:
    """Returns the real path of a target; a link to a folder stays in place."""
    if target.is_folder:
        return os.path.realpath(target.path)
    return os.path.abspath(target.path)


def _remove_leftovers(path: str) -> None:
    """Removes what killed conversions to the same target left behind."""
    parent, name = os.path.split(path)
    for found in files.list_folder(parent) if files.is_folder(parent) else ():
        leftover = os.path.join(parent, found)
        final_name = files.final_name(found)
        if found == final_name or final_name not in (name, name + _REPLACED):
            continue
        if final_name != name and not os.path.exists(path):
            # Killed after moving the old folder away and before placing the new one.
            os.rename(leftover, path)
        else:
            shutil.rmtree(leftover, ignore_errors=True)


def _place_folder(folder: str, path: str, target: Target) -> None:
    there = _names_in(path)
    if not there and not (files.is_folder(path) and files.list_folder(path)):
        files.rename(folder, path)
        return
    _check_overwrite(target)
    foreign = sorted(there - _names_in(folder))
    if foreign:
        raise ValueError(
            f"{target.path} contains {foreign[0]}, which the new checkpoint lacks; "
            "remove the folder yourself, or choose another --target."
        )
    replaced = files.temporary_path(path + _REPLACED)
    files.rename(path, replaced)
    try:
        files.rename(folder, path)
    except BaseException:
        files.rename(replaced, path)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def _names_in(folder: str) -> set[str]:
    """Returns the paths of all files below a folder, relative to it."""
    return {
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, names in os.walk(folder)
        for name in names
    }


def _place_files(folder: str, parent: str, target: Target) -> None:
    """Moves files into a folder; the one that completes the checkpoint comes last."""
    last = (target.name, f"{target.name}.index")
    names = sorted(files.list_folder(folder), key=lambda name: (name in last, name))
    for name in names:
        there = os.path.join(parent, name)
        if files.exists(there) and not _have_same_bytes(
            there, os.path.join(folder, name)
        ):
            if name not in last and not target.overwrite:
                raise ValueError(
                    f"{there} already exists and belongs to another checkpoint; pass a "
                    "--target in another folder, or --overwrite."
                )
            _check_overwrite(target)
    for name in last:
        if files.exists(os.path.join(parent, name)):
            files.remove(os.path.join(parent, name))
    for name in names:
        files.rename(os.path.join(folder, name), os.path.join(parent, name))


def _have_same_bytes(one: str, other: str) -> bool:
    if files.size(one) != files.size(other):
        return False
    with files.open_file(one, "rb") as file, files.open_file(other, "rb") as second:
        return file.read() == second.read()


def _synchronize(folder: str) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(parent, name), "rb") as file:
                os.fsync(file.fileno())


def _copy(folder: str, target: Target) -> None:
    """Copies to a store without renaming; what completes the checkpoint comes last."""
    paths = _names_in(folder)
    base = target.path if target.is_folder else os.path.dirname(target.path)
    last = ("config.json", "saved_model.pb", target.name)
    is_last = {path: path in last or path.endswith(".index") for path in paths}
    for path in sorted(paths, key=lambda path: (is_last[path], path)):
        with (
            open(os.path.join(folder, path), "rb") as file,
            files.complete_or_absent(f"{base}/{path}", "wb") as copy,
        ):
            shutil.copyfileobj(file, copy)
