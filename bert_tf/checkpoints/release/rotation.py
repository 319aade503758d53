"""The checkpoints of a run: the newest few, and which of them is the last.

The files of a step are written in the order data, index, then the text file
`checkpoint`, whose appearance commits. So a run that is killed at any moment finds its
last complete checkpoint.
"""

import logging
import os
import re

from bert_tf import files
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import state_file

logger = logging.getLogger(__name__)

_NAME = "model.ckpt"
_STEP_NAME = re.compile(re.escape(_NAME) + r"-\d+")


def write_step(output_dir, step, tensors, keep_max=5):
    """Writes the checkpoint of a step, and removes old ones that this run wrote.

    Args:
        output_dir: folder of the run; is made if it is not there.
        step: int, finished optimizer steps.
        tensors: dict from name to a variable, tensor or array.
        keep_max: int, how many checkpoints stay; 0 keeps all.

    Returns:
        The prefix that was written.

    Raises:
        OSError: it cannot be written; earlier checkpoints are as they were.
        ValueError: the folder's `checkpoint` file cannot be understood.
    """
    write_parts(output_dir, step, tensors)
    return commit(output_dir, step, keep_max=keep_max)


def write_parts(output_dir, step, tensors):
    """Writes data and index of a step, which do not count before `commit`.

    Raises:
        OSError: they cannot be written; earlier checkpoints are as they were.
        ValueError: the folder's `checkpoint` file cannot be understood.
    """
    output_dir = os.fspath(output_dir)
    state_file.read(output_dir)
    _remove_leftovers(output_dir)
    bundle.save(_prefix(output_dir, step), tensors)


def commit(output_dir, step, keep_max=5):
    """Names a written step in the file `checkpoint`; removes old ones of this run.

    Args:
        output_dir: folder of the run.
        step: int, as `write_parts` was given it.
        keep_max: int, how many checkpoints stay; 0 keeps all.

    Returns:
        The prefix of the step.

    Raises:
        OSError: the file cannot be written; the checkpoint before is still the last.
    """
    output_dir = os.fspath(output_dir)
    prefix = _prefix(output_dir, step)
    state = state_file.read(output_dir)
    kept = [path for path in state.prefixes if path != prefix] if state else []
    kept = [path for path in kept if _is_beside(output_dir, path)] + [prefix]
    # Old ones stay in the file until they are gone: were the run killed here, its
    # next checkpoint would remove them.
    state_file.write(output_dir, kept)
    old = _beyond(kept, keep_max)
    if old:
        for path in old:
            _remove(path)
        state_file.write(output_dir, [path for path in kept if path not in old])
    return prefix


def latest(output_dir):
    """Returns the prefix of a folder's newest complete checkpoint, or None.

    Raises:
        FileNotFoundError: the folder's `checkpoint` file names checkpoints, but none
            of them is there.
        ValueError: the `checkpoint` file cannot be understood.
    """
    state = state_file.read(os.fspath(output_dir))
    if state is None:
        return None
    for prefix in (state.latest, *reversed(state.prefixes)):
        if state_file.is_complete(prefix):
            if prefix != state.latest:
                logger.warning("%s is missing; taking %s.", state.latest, prefix)
            return prefix
    raise FileNotFoundError(
        f"{os.path.join(output_dir, state_file.NAME)} names {state.latest}, but its "
        "files are missing; bring them back, or remove the file to start anew."
    )


def _prefix(output_dir, step):
    return os.path.join(output_dir, f"{_NAME}-{step}")


def _beyond(prefixes, keep_max):
    """Returns those to remove: written by a run of ours, not among the newest."""
    if not keep_max:
        return []
    # Other checkpoints that the file names were put there by hand.
    ours = [p for p in prefixes if _STEP_NAME.fullmatch(os.path.basename(p))]
    return ours[:-keep_max]


def _is_beside(folder, prefix):
    return os.path.abspath(os.path.dirname(prefix)) == os.path.abspath(folder)


def _remove(prefix):
    """Removes a checkpoint, the index first: without it nothing takes the rest."""
    for path in (f"{prefix}.index", *state_file.data_files(prefix)):
        if files.exists(path):
            files.remove(path)


def _remove_leftovers(folder):
    """Removes what a killed run left unfinished."""
    if files.is_folder(folder):
        bundle.remove_partial(folder, f".{_NAME}-")
        bundle.remove_partial(folder, f".{state_file.NAME}.")
