"""The text file `checkpoint` of a folder: the checkpoints in it, and the latest one.

TensorFlow itself writes and reads this file. Here it is the commit marker of a save:
it is written last and replaced atomically, so a checkpoint that it does not name was
never finished, even if some of its data and index files exist.
"""

import contextlib
import dataclasses
import json
import logging
import os
from collections.abc import Iterator
from collections.abc import Sequence

import tensorflow as tf

from bert_tf import files

NAME = "checkpoint"


@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """The content of a `checkpoint` file."""

    latest: str  # Prefix of the newest checkpoint.
    prefixes: tuple[str, ...]  # All checkpoints, oldest first.


def read(folder: str) -> State | None:
    """Returns the `State` of a folder, or None if it has no `checkpoint` file.

    Only checkpoints in the folder are accepted. Absolute paths, which remain when a
    folder is copied or moved, are looked up in the folder itself.

    Raises:
        ValueError: the file is damaged, or names a checkpoint elsewhere.
    """
    path = os.path.join(folder, NAME)
    if not files.exists(path):
        return None
    try:
        # TensorFlow logs what it cannot parse and returns None.
        with _unlogged():
            state = tf.train.get_checkpoint_state(folder)
    except (tf.errors.OpError, ValueError):
        state = None
    if state is None or not state.model_checkpoint_path:
        raise ValueError(
            f"{path} does not name a checkpoint; expected a line such as "
            'model_checkpoint_path: "model.ckpt-1000". Correct or remove it.'
        )
    latest = _inside(folder, state.model_checkpoint_path)
    prefixes = [_inside(folder, name) for name in state.all_model_checkpoint_paths]
    if latest not in prefixes:
        prefixes.append(latest)
    return State(latest=latest, prefixes=tuple(prefixes))


def write(folder: str, prefixes: Sequence[str]) -> None:
    """Writes the file: names relative to the folder, the last one is the latest."""
    names = [os.path.basename(prefix) for prefix in prefixes]
    lines = [f"model_checkpoint_path: {json.dumps(names[-1])}"]
    lines += [f"all_model_checkpoint_paths: {json.dumps(name)}" for name in names]
    with files.complete_or_absent(os.path.join(folder, NAME)) as file:
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
    start = f"{name}.data-"
    return [
        os.path.join(folder, found)
        for found in files.list_folder(folder)
        if found.startswith(start) and ".tempstate" not in found
    ]


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    logger = tf.get_logger()

    def drop(record: logging.LogRecord) -> bool:
        return False

    logger.addFilter(drop)
    try:
        yield
    finally:
        logger.removeFilter(drop)


def _inside(folder: str, prefix: str) -> str:
    own = os.path.abspath(folder)
    if os.path.commonpath([own, os.path.abspath(prefix)]) == own:
        return prefix
    beside = os.path.join(folder, os.path.basename(prefix))
    if is_complete(prefix) and not is_complete(beside):
        raise ValueError(
            f"{os.path.join(folder, NAME)} names {prefix}, which is outside the "
            "folder; expected a checkpoint beside the file. Pass that checkpoint "
            "itself, or correct the file."
        )
    return beside
