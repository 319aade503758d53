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

logger = logging.getLogger(__name__)

_NAME = "model.ckpt"
_STEP_NAME = re.compile(re.escape(_NAME) + r"-\d+")


def write_parts(
    output_dir: str | os.PathLike[str], step: int, tensors: Mapping[str, Any]
) -> None:
    """Writes data and index of a step, which do not count before `commit`.

    Raises:
        OSError: they cannot be written; earlier checkpoints are unchanged.
        ValueError: the folder's `checkpoint` file is damaged.
    """
    output_dir = os.fspath(output_dir)
    bundle.read_state(output_dir)
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
    prefixes = [path for path in _prefixes(output_dir) if path != prefix] + [prefix]
    # Old checkpoints stay listed until they are gone: if the run is killed here, its
    # next checkpoint removes them.
    bundle.write_state(output_dir, prefixes)
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
    broken = [p for p in _ours(prefixes[:-1]) if not bundle.is_complete(p)]
    _remove(output_dir, prefixes, broken)


def latest(output_dir: str | os.PathLike[str]) -> str | None:
    """Returns the prefix of a folder's newest complete checkpoint, or None.

    Raises:
        FileNotFoundError: the folder's `checkpoint` file names checkpoints, but all of
            them are missing.
        ValueError: the `checkpoint` file is damaged.
    """
    prefixes = bundle.read_state(os.fspath(output_dir))
    if not prefixes:
        return None
    for prefix in reversed(prefixes):
        if bundle.is_complete(prefix):
            if prefix != prefixes[-1]:
                logger.warning("%s is missing; using %s.", prefixes[-1], prefix)
            return prefix
    raise FileNotFoundError(
        f"{os.path.join(output_dir, bundle.STATE_FILE)} names {prefixes[-1]}, but its "
        "files are missing; restore them, or remove the file to start from scratch."
    )


def _prefix(output_dir: str, step: int) -> str:
    return os.path.join(output_dir, f"{_NAME}-{step}")


def _ours(prefixes: Sequence[str]) -> list[str]:
    # Any other checkpoint in the file was put there by the user.
    return [p for p in prefixes if _STEP_NAME.fullmatch(os.path.basename(p))]


def _prefixes(folder: str) -> list[str]:
    """Returns the checkpoints beside a folder's `checkpoint` file, oldest first."""
    prefixes, parent = bundle.read_state(folder), os.path.abspath(folder)
    return [p for p in prefixes if os.path.abspath(os.path.dirname(p)) == parent]


def _remove(folder: str, prefixes: Sequence[str], removed: Sequence[str]) -> None:
    """Removes checkpoints of a folder, and then their names from its file."""
    for prefix in removed:
        # The index comes first: without it, no reader takes the rest.
        for path in (f"{prefix}.index", *bundle.data_files(prefix)):
            if files.exists(path):
                files.remove(path)
    if removed:
        bundle.write_state(folder, [path for path in prefixes if path not in removed])


def _remove_unfinished(folder: str) -> None:
    """Removes unfinished files, in object stores too; no other process may write."""
    for name in files.list_folder(folder) if files.is_folder(folder) else ():
        final = files.final_name(name)
        if final != name and final.startswith((f"{_NAME}-", bundle.STATE_FILE)):
            files.remove(os.path.join(folder, name))
