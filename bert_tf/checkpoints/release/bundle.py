"""Reads and writes the tensors of one name-based TensorFlow checkpoint.

A checkpoint is identified by its prefix, such as `run/model.ckpt-1000`. It consists of
`PREFIX.data-00000-of-00001` and, written after it, `PREFIX.index`.
"""

import contextlib
import os
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.release import state_file

_PART = re.compile(r"\.(index|data-\d{5}-of-\d{5})$")


def save(prefix: str | os.PathLike[str], tensors: Mapping[str, Any]) -> None:
    """Writes a checkpoint; its files appear complete, the index last.

    Args:
        prefix: path without `.index`. Its folder is created if needed.
        tensors: {name: variable, tensor or array}. Variables in host memory are not
            copied.

    Raises:
        OSError: it cannot be written, for example because the disk is full. Existing
            files are unchanged.
    """
    prefix = os.fspath(prefix)
    folder = os.path.dirname(prefix)
    files.make_folders(folder or ".")
    # Object stores cannot rename, but SaveV2 writes data before index there as well.
    temporary = prefix
    if "://" not in prefix:
        temporary = files.temporary_path(prefix)
    ordered = sorted(tensors)
    try:
        with _clear_write_errors(prefix):
            tf.raw_ops.SaveV2(
                prefix=temporary,
                tensor_names=ordered,
                shape_and_slices=[""] * len(ordered),
                tensors=[tf.convert_to_tensor(tensors[name]) for name in ordered],
            )
        if temporary != prefix:
            _rename_parts(temporary, prefix)
    except BaseException:
        if temporary != prefix:
            remove_partial(folder or ".", os.path.basename(temporary))
        raise


def remove_partial(folder: str, start: str) -> None:
    """Removes the files of unfinished checkpoints whose names begin with `start`.

    Only names that `save` gives to unfinished files are touched.
    """
    for name in files.list_folder(folder):
        if name.startswith(start) and files.PARTIAL in name and name.startswith("."):
            files.remove(os.path.join(folder, name))


def read_names_and_shapes(path: str | os.PathLike[str]) -> dict[str, list[int]]:
    """Returns {name: shape} of every tensor in a checkpoint.

    Args:
        path: see `resolve`.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the path is not a prefix, or the files are damaged.
    """
    prefix = resolve(path)
    return dict(_open(prefix).get_variable_to_shape_map())


def read(path: str | os.PathLike[str], wanted: Iterable[str]) -> dict[str, np.ndarray]:
    """Returns {name: ndarray} of some tensors of a checkpoint.

    Args:
        path: see `resolve`.
        wanted: names of tensors.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: a tensor is missing, or the files are damaged.
    """
    return dict(read_each(path, wanted))


def read_each(
    path: str | os.PathLike[str], wanted: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields (name, ndarray) of some tensors, one in memory at a time.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: a tensor is missing, or the files are damaged.
    """
    prefix = resolve(path)
    reader = _open(prefix)
    shapes = reader.get_variable_to_shape_map()
    for name in wanted:
        if name not in shapes:
            raise ValueError(f"The checkpoint {prefix} has no tensor {name}.")
        with _clear_read_errors(prefix):
            tensor = reader.get_tensor(name)
        yield name, tensor


def assign(path: str | os.PathLike[str], variables: Mapping[str, Any]) -> None:
    """Assigns a checkpoint's values to variables.

    All shapes are compared before the first assignment. One tensor at a time is in
    memory.

    Args:
        path: see `resolve`.
        variables: {name in the checkpoint: variable}; works under any tf.distribute
            strategy.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: a tensor is missing, has a different shape or non-finite values, or
            the files are damaged.
    """
    prefix = resolve(path)
    shapes = read_names_and_shapes(prefix)
    for name, variable in variables.items():
        found, expected = shapes.get(name), list(variable.shape)
        if found is not None and list(found) != expected:
            raise ValueError(
                f"{name} has shape {list(found)} in the checkpoint {prefix}, expected "
                f"{expected}; pass the bert_config.json that belongs to the checkpoint."
            )
    for name, tensor in read_each(prefix, variables):
        source_module.check_finite(prefix, name, tensor)
        variables[name].assign(tensor)


def resolve(path: str | os.PathLike[str]) -> str:
    """Returns the checkpoint prefix that a path means.

    Args:
        path: a prefix; a folder with a `checkpoint` file, which names the latest
            checkpoint; or a folder that contains exactly one checkpoint, as the
            release's folders do.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the path is one file of a checkpoint, or a folder whose latest
            checkpoint is unclear.
    """
    path = os.fspath(path)
    part = _PART.search(path)
    if part:
        raise ValueError(
            f"{path} is one file of a checkpoint; pass the prefix that its files "
            f"share: {path[: part.start()]}"
        )
    # First, because the store ram:// takes the start of a file name for a folder.
    if state_file.is_complete(path):
        return path
    if files.is_folder(path):
        state = state_file.read(path)
        path = state.latest if state else _only_prefix(path)
    if state_file.is_complete(path):
        return path
    for ending in ("index", "data-00000-of-00001"):
        if not files.exists(f"{path}.{ending}"):
            raise FileNotFoundError(
                f"No checkpoint {path}: there is no {path}.{ending}"
            )
    raise FileNotFoundError(f"No checkpoint {path}: its data file is missing.")


def is_part(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is named like one file of a checkpoint."""
    return _PART.search(os.fspath(path)) is not None


def prefixes_in(folder: str) -> list[str]:
    """Returns the prefixes of the checkpoints in a folder, sorted."""
    names = [name for name in files.list_folder(folder) if name.endswith(".index")]
    return [os.path.join(folder, name.removesuffix(".index")) for name in names]


def _only_prefix(folder: str) -> str:
    prefixes = [path for path in prefixes_in(folder) if state_file.is_complete(path)]
    if len(prefixes) == 1:
        return prefixes[0]
    example = min(prefixes, default=os.path.join(folder, "model.ckpt"))
    raise ValueError(
        f"{folder} is a folder without a file named checkpoint, and it contains "
        f"{len(prefixes)} checkpoints; pass the prefix of one, such as {example}"
    )


def _rename_parts(temporary: str, prefix: str) -> None:
    for path in (*state_file.data_files(temporary), f"{temporary}.index"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        files.rename(path, prefix + path.removeprefix(temporary))


def _open(prefix: str) -> Any:
    with _clear_read_errors(prefix):
        # Not tf.train.load_checkpoint: it would first look for a folder of that name.
        return tf.compat.v1.train.NewCheckpointReader(prefix)


@contextlib.contextmanager
def _clear_read_errors(prefix: str) -> Iterator[None]:
    try:
        yield
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        reason = files.reason_of(error)
        raise ValueError(
            f"The checkpoint {prefix} cannot be read: it is damaged or truncated "
            f"({reason}); copy it again{_older(prefix)}."
        ) from error


def _older(prefix: str) -> str:
    """Returns advice that names the next older checkpoint of a run, or ""."""
    try:
        state = state_file.read(os.path.dirname(prefix) or ".")
    except (OSError, ValueError):
        return ""
    if state is None or prefix not in state.prefixes:
        return ""
    before = state.prefixes[: state.prefixes.index(prefix)]
    older = [other for other in before if state_file.is_complete(other)]
    return f", or use the previous one, {older[-1]}" if older else ""


@contextlib.contextmanager
def _clear_write_errors(prefix: str) -> Iterator[None]:
    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(
            f"The checkpoint {prefix} cannot be written: {files.reason_of(error)}. "
            "Earlier checkpoints are unchanged."
        ) from error
