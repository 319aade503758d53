"""Reads and writes name-based TensorFlow checkpoints, and keeps the newest of a run.

A checkpoint is identified by its prefix, such as `run/model.ckpt-1000`. It consists of
`PREFIX.data-00000-of-00001` and, written after it, `PREFIX.index`.

The text file `checkpoint` of a folder names its checkpoints and the latest one. Here it
is the commit marker of a save: it is written last and replaced atomically, so a
checkpoint that it does not name was never finished, even if its other files exist. A
run that is killed at any time therefore finds its last complete checkpoint.
"""

import contextlib
import json
import logging
import os
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import files

logger = logging.getLogger(__name__)

STATE_FILE = "checkpoint"
_PART = re.compile(r"\.(index|data-\d{5}-of-\d{5})$")
# The checkpoints of a run, before their step.
_RUN_PREFIX = "model.ckpt"
_STEP_NAME = re.compile(re.escape(_RUN_PREFIX) + r"-\d+")


def save(prefix: str | os.PathLike[str], tensors: Mapping[str, Any]) -> None:
    """Writes a checkpoint; its files appear complete, the index last.

    `tensors` may be variables, tensors and arrays. Variables in host memory are not
    copied. The folder is created if needed.

    Raises:
        OSError: it cannot be written, for example because the disk is full. Existing
            files are unchanged.
    """
    prefix = os.fspath(prefix)
    folder = os.path.dirname(prefix) or "."
    files.make_folders(folder)
    # Object stores cannot rename, but SaveV2 writes data before index there as well.
    temporary = prefix if files.is_remote(prefix) else files.temporary_path(prefix)
    ordered = sorted(tensors)
    try:
        tf.raw_ops.SaveV2(
            prefix=temporary,
            tensor_names=ordered,
            shape_and_slices=[""] * len(ordered),
            tensors=[tf.convert_to_tensor(tensors[name]) for name in ordered],
        )
        if temporary != prefix:
            for path in (*data_files(temporary), f"{temporary}.index"):
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
                files.rename(path, prefix + path.removeprefix(temporary))
    except BaseException as error:
        if temporary != prefix:
            for name in files.list_folder(folder):
                if name.startswith(os.path.basename(temporary)):
                    files.remove(os.path.join(folder, name))
        if isinstance(error, tf.errors.OpError):
            raise OSError(
                f"The checkpoint {prefix} cannot be written: {files.reason_of(error)}. "
                "Earlier checkpoints are unchanged."
            ) from error
        raise


def read_names_and_shapes(path: str | os.PathLike[str]) -> dict[str, list[int]]:
    """Returns {name: shape} of every tensor in the checkpoint that `resolve` finds.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the path is not a prefix, or the files are damaged.
    """
    return dict(_open(resolve(path)).get_variable_to_shape_map())


def read(path: str | os.PathLike[str], wanted: Iterable[str]) -> dict[str, np.ndarray]:
    """Returns {name: ndarray} of some tensors of a checkpoint; see `read_each`."""
    return dict(read_each(path, wanted))


def read_each(
    path: str | os.PathLike[str], wanted: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields (name, ndarray) of some tensors, one in memory at a time.

    Raises:
        FileNotFoundError: `resolve` finds no checkpoint.
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


def resolve(path: str | os.PathLike[str]) -> str:
    """Returns the checkpoint prefix that a path means.

    It is a prefix; a folder with a `checkpoint` file, which names the latest
    checkpoint; or a folder with exactly one checkpoint, such as the release's folders.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the path is one file of a checkpoint, or a folder whose latest
            checkpoint is unclear.
    """
    path = os.fspath(path)
    if part := _PART.search(path):
        raise ValueError(
            f"{path} is one file of a checkpoint; pass the prefix that its files "
            f"share: {path[: part.start()]}"
        )
    # First, because the store ram:// takes the start of a file name for a folder.
    if not is_complete(path) and files.is_folder(path):
        prefixes = read_state(path)
        path = prefixes[-1] if prefixes else _only_prefix(path)
    if is_complete(path):
        return path
    ending = "data-00000-of-00001" if files.exists(f"{path}.index") else "index"
    raise FileNotFoundError(f"No checkpoint {path}: there is no {path}.{ending}")


def looks_like_checkpoint(path: str) -> bool:
    """Returns whether a path looks like a checkpoint, though it may be damaged."""
    if files.is_folder(path):
        return any(
            name == STATE_FILE or name.endswith(".index")
            for name in files.list_folder(path)
        )
    is_part = _PART.search(path) is not None
    return is_part or files.exists(f"{path}.index") or bool(data_files(path))


def read_state(folder: str) -> tuple[str, ...]:
    """Returns the prefixes that a folder's `checkpoint` file names, the latest last.

    It is empty if there is no such file.

    Only checkpoints in the folder are accepted. Absolute paths, which remain when a
    folder is copied or moved, are looked up in the folder itself.

    Raises:
        ValueError: the file is damaged, or names a checkpoint elsewhere.
    """
    path = os.path.join(folder, STATE_FILE)
    if not files.exists(path):
        return ()
    log = tf.get_logger()
    # TensorFlow logs what it cannot parse and returns None.
    was_disabled, log.disabled = log.disabled, True
    try:
        state = tf.train.get_checkpoint_state(folder)
    except (tf.errors.OpError, ValueError):
        state = None
    finally:
        log.disabled = was_disabled
    if state is None or not state.model_checkpoint_path:
        raise ValueError(
            f"{path} does not name a checkpoint; expected a line such as "
            'model_checkpoint_path: "model.ckpt-1000". Correct or remove it.'
        )
    latest = _inside(folder, state.model_checkpoint_path)
    prefixes = (_inside(folder, name) for name in state.all_model_checkpoint_paths)
    return (*(prefix for prefix in prefixes if prefix != latest), latest)


def write_state(folder: str, prefixes: Sequence[str]) -> None:
    """Writes the file: names relative to the folder, the last one is the latest."""
    names = [json.dumps(os.path.basename(prefix)) for prefix in prefixes]
    lines = [f"model_checkpoint_path: {names[-1]}"]
    lines += [f"all_model_checkpoint_paths: {name}" for name in names]
    with files.complete_or_absent(os.path.join(folder, STATE_FILE)) as file:
        file.write("\n".join(lines) + "\n")


def is_complete(prefix: str) -> bool:
    """Returns whether a checkpoint exists: its index and a data file."""
    return files.exists(f"{prefix}.index") and bool(data_files(prefix))


def data_files(prefix: str) -> list[str]:
    """Returns the paths of a checkpoint's data files."""
    folder, name = os.path.split(prefix)
    folder = folder or "."
    if not files.is_folder(folder):
        return []
    return [
        os.path.join(folder, file_name)
        for file_name in files.list_folder(folder)
        if file_name.startswith(f"{name}.data-") and ".tempstate" not in file_name
    ]


def write_parts(
    output_dir: str | os.PathLike[str], step: int, tensors: Mapping[str, Any]
) -> None:
    """Writes data and index of a step, which do not count before `commit`.

    Raises:
        OSError: they cannot be written; earlier checkpoints are unchanged.
        ValueError: the folder's `checkpoint` file is damaged.
    """
    output_dir = os.fspath(output_dir)
    read_state(output_dir)
    _remove_unfinished(output_dir)
    save(_prefix(output_dir, step), tensors)


def commit(output_dir: str | os.PathLike[str], step: int, keep_max: int = 5) -> str:
    """Names a written step in the file `checkpoint`; removes old ones of this run.

    Args:
        output_dir: folder of the run.
        step: as it was given to `write_parts`.
        keep_max: how many checkpoints to keep; 0 keeps all.

    Returns:
        The prefix of the step.

    Raises:
        OSError: the file cannot be written; the previous checkpoint is still the last.
    """
    output_dir = os.fspath(output_dir)
    prefix = _prefix(output_dir, step)
    prefixes = [path for path in _prefixes(output_dir) if path != prefix] + [prefix]
    # Old checkpoints stay listed until they are gone: if the run is killed here, its
    # next checkpoint removes them.
    write_state(output_dir, prefixes)
    _remove(output_dir, prefixes, _ours(prefixes)[:-keep_max] if keep_max else [])
    return prefix


def remove_leftovers(output_dir: str | os.PathLike[str]) -> None:
    """Removes what a killed run left: unfinished files, half-removed checkpoints.

    Call it only while no other process writes to the folder.

    Raises:
        OSError: a file cannot be removed.
        ValueError: the folder's `checkpoint` file is damaged.
    """
    output_dir = os.fspath(output_dir)
    _remove_unfinished(output_dir)
    prefixes = _prefixes(output_dir)
    broken = [p for p in _ours(prefixes[:-1]) if not is_complete(p)]
    _remove(output_dir, prefixes, broken)


def latest(output_dir: str | os.PathLike[str]) -> str | None:
    """Returns the prefix of a folder's newest complete checkpoint, or None.

    Raises:
        FileNotFoundError: the folder's `checkpoint` file names checkpoints, but all of
            them are missing.
        ValueError: the `checkpoint` file is damaged.
    """
    prefixes = read_state(os.fspath(output_dir))
    if not prefixes:
        return None
    for prefix in reversed(prefixes):
        if is_complete(prefix):
            if prefix != prefixes[-1]:
                logger.warning("%s is missing; using %s.", prefixes[-1], prefix)
            return prefix
    raise FileNotFoundError(
        f"{os.path.join(output_dir, STATE_FILE)} names {prefixes[-1]}, but its "
        "files are missing; restore them, or remove the file to start from scratch."
    )


def _only_prefix(folder: str) -> str:
    names = [name for name in files.list_folder(folder) if name.endswith(".index")]
    prefixes = [os.path.join(folder, name.removesuffix(".index")) for name in names]
    prefixes = list(filter(is_complete, prefixes))
    if len(prefixes) == 1:
        return prefixes[0]
    example = min(prefixes, default=os.path.join(folder, "model.ckpt"))
    raise ValueError(
        f"{folder} is a folder without a file named checkpoint, and it contains "
        f"{len(prefixes)} checkpoints; pass the prefix of one, such as {example}"
    )


def _inside(folder: str, prefix: str) -> str:
    parent = os.path.abspath(folder)
    if os.path.commonpath([parent, os.path.abspath(prefix)]) == parent:
        return prefix
    beside = os.path.join(folder, os.path.basename(prefix))
    if is_complete(prefix) and not is_complete(beside):
        raise ValueError(
            f"{os.path.join(folder, STATE_FILE)} names {prefix}, which is outside the "
            "folder; expected a checkpoint beside the file. Pass that checkpoint "
            "itself, or correct the file."
        )
    return beside


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
        prefixes = read_state(os.path.dirname(prefix) or ".")
    except (OSError, ValueError):
        return ""
    if prefix not in prefixes:
        return ""
    older = list(filter(is_complete, prefixes[: prefixes.index(prefix)]))
    return f", or use the previous one, {older[-1]}" if older else ""


def _prefix(output_dir: str, step: int) -> str:
    return os.path.join(output_dir, f"{_RUN_PREFIX}-{step}")


def _ours(prefixes: Sequence[str]) -> list[str]:
    # Any other checkpoint in the file was put there by the user.
    return [p for p in prefixes if _STEP_NAME.fullmatch(os.path.basename(p))]


def _prefixes(folder: str) -> list[str]:
    """Returns the checkpoints beside a folder's `checkpoint` file, oldest first."""
    prefixes, parent = read_state(folder), os.path.abspath(folder)
    return [p for p in prefixes if os.path.abspath(os.path.dirname(p)) == parent]


def _remove(folder: str, prefixes: Sequence[str], removed: Sequence[str]) -> None:
    """Removes checkpoints of a folder, and then their names from its file."""
    for prefix in removed:
        # The index comes first: without it, no reader takes the rest.
        for path in (f"{prefix}.index", *data_files(prefix)):
            if files.exists(path):
                files.remove(path)
    if removed:
        write_state(folder, [path for path in prefixes if path not in removed])


def _remove_unfinished(folder: str) -> None:
    """Removes unfinished files, in object stores too; no other process may write."""
    for name in files.list_folder(folder) if files.is_folder(folder) else ():
        final = files.final_name(name)
        if final != name and final.startswith((f"{_RUN_PREFIX}-", STATE_FILE)):
            files.remove(os.path.join(folder, name))
