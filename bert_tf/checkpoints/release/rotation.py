"""The checkpoints of a run: the newest few, and which one is the last.

A step is saved in this order: data files, index, then the text file `checkpoint`, which
commits it. A run that is killed at any time therefore finds its last complete
checkpoint.
"""

import logging
import os
import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import state_file

logger = logging.getLogger(__name__)

_NAME = "model.ckpt"
_STEP_NAME = re.compile(re.escape(_NAME) + r"-\d+")


def write_step(
    output_dir: str | os.PathLike[str],
    step: int,
    tensors: Mapping[str, Any],
    keep_max: int = 5,
) -> str:
    """Writes the checkpoint of a step and removes old ones that this run wrote.

    Args:
        output_dir: folder of the run; is created if needed.
        step: number of finished optimizer steps.
        tensors: {name: variable, tensor or array}.
        keep_max: how many checkpoints to keep; 0 keeps all.

    Returns:
        The prefix of the checkpoint.

    Raises:
        OSError: it cannot be written; earlier checkpoints are unchanged.
        ValueError: the folder's `checkpoint` file is damaged.
    """
    write_parts(output_dir, step, tensors)
    return commit(output_dir, step, keep_max=keep_max)


def write_parts(
    output_dir: str | os.PathLike[str], step: int, tensors: Mapping[str, Any]
) -> None:
    """Writes data and index of a step, which do not count before `commit`.

    Raises:
        OSError: they cannot be written; earlier checkpoints are unchanged.
        ValueError: the folder's `checkpoint` file is damaged.
    """
    output_dir = os.fspath(output_dir)
    state_file.read(output_dir)
    _remove_unfinished(output_dir)
    bundle.save(_prefix(output_dir, step), tensors)


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
    state = state_file.read(output_dir)
    kept = [path for path in state.prefixes if path != prefix] if state else []
    kept = [path for path in kept if _is_beside(output_dir, path)] + [prefix]
    # Old checkpoints stay listed until they are gone: if the run is killed here, its
    # next checkpoint removes them.
    state_file.write(output_dir, kept)
    old = _beyond(kept, keep_max)
    if old:
        for path in old:
            _remove(path)
        state_file.write(output_dir, [path for path in kept if path not in old])
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
    state = state_file.read(output_dir)
    prefixes = [p for p in state.prefixes if _is_beside(output_dir, p)] if state else []
    broken = [p for p in _ours(prefixes[:-1]) if not state_file.is_complete(p)]
    for path in broken:
        _remove(path)
    if broken:
        state_file.write(output_dir, [path for path in prefixes if path not in broken])


def latest(output_dir: str | os.PathLike[str]) -> str | None:
    """Returns the prefix of a folder's newest complete checkpoint, or None.

    Raises:
        FileNotFoundError: the folder's `checkpoint` file names checkpoints, but all of
            them are missing.
        ValueError: the `checkpoint` file is damaged.
    """
    state = state_file.read(os.fspath(output_dir))
    if state is None:
        return None
    for prefix in (state.latest, *reversed(state.prefixes)):
        if state_file.is_complete(prefix):
            if prefix != state.latest:
                logger.warning("%s is missing; using %s.", state.latest, prefix)
            return prefix
    raise FileNotFoundError(
        f"{os.path.join(output_dir, state_file.NAME)} names {state.latest}, but its "
        "files are missing; restore them, or remove the file to start from scratch."
    )


def _prefix(output_dir: str, step: int) -> str:
    return os.path.join(output_dir, f"{_NAME}-{step}")


def _beyond(prefixes: Sequence[str], keep_max: int) -> list[str]:
    """Returns the checkpoints to remove: written by our runs and not the newest."""
    if not keep_max:
        return []
    return _ours(prefixes)[:-keep_max]


def _ours(prefixes: Sequence[str]) -> list[str]:
    # Any other checkpoint in the file was put there by the user.
    return [p for p in prefixes if _STEP_NAME.fullmatch(os.path.basename(p))]


def _is_beside(folder: str, prefix: str) -> bool:
    return os.path.abspath(os.path.dirname(prefix)) == os.path.abspath(folder)


def _remove(prefix: str) -> None:
    """Removes a checkpoint, the index first: without it, no reader takes the rest."""
    for path in (f"{prefix}.index", *state_file.data_files(prefix)):
        if files.exists(path):
            files.remove(path)


def _remove_unfinished(folder: str) -> None:
    if files.is_folder(folder):
        bundle.remove_partial(folder, f".{_NAME}-")
        bundle.remove_partial(folder, f".{state_file.NAME}.")
