"""Checkpoints of a run: what they contain, writing them while training, restoring.

A checkpoint contains the weights and the optimizer's slots under the release's names,
and the step. Together with the options this is all that a run depends on, so a run
that was killed resumes exactly.
"""

import functools
import logging
import os
import threading
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.release import bundle
from bert_tf.training import options as training_options
from bert_tf.training import workers

logger = logging.getLogger(__name__)

BEST_FOLDER = "best"


class CheckpointWriter:
    """Writes checkpoints in a thread while training continues.

    The state is copied into the host's memory first, so the next step may change the
    weights. With several workers only the chief writes.

    A checkpoint is written in two parts. The thread writes data and index; the file
    `checkpoint`, which makes them the latest checkpoint, follows only after all workers
    have met at a barrier. There they learn whether the chief could write. If it could
    not, all of them stop, instead of waiting for the chief in the next step. The
    barrier runs in the main thread, at the next call: in the writing thread its
    collective operation would interleave with those of the training steps.

    Args:
        model: built model.
        optimizer: built optimizer.
        options: the folder, and how many checkpoints to keep.
        workers: the processes of the run.

    Example:
        with CheckpointWriter(model, optimizer, options, workers) as writer:
            writer.save(10)
            ...  # Training steps, and now and then:
            writer.check()
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        options: training_options.CheckpointOptions,
        workers: workers.Workers,
    ):
        self._model = model
        self._optimizer = optimizer
        self._options = options
        self._workers = workers
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        # Folder, step and keep_max of the checkpoint in progress, equal on all workers.
        self._pending: tuple[str, int, int] | None = None

    def __enter__(self) -> "CheckpointWriter":
        return self

    def __exit__(self, kind: type | None, *unused_error: object) -> None:
        if kind is None:
            self.finish()
        elif self._thread is not None:
            # The run ends with its own error; let the thread finish its files.
            self._thread.join()

    def save(self, step: int, *, train_seconds: float | None = None) -> None:
        """Starts writing weights, slots and step; first waits for the one before.

        A run with a time limit has used `train_seconds`.

        Raises:
            OSError: the previous checkpoint could not be written.
        """
        pending = self._options.output_dir, step, self._options.keep_checkpoint_max
        self._start(pending, self._optimizer, train_seconds)

    def save_best(self, step: int) -> str:
        """Starts writing the weights into the folder best/, replacing earlier ones.

        Returns:
            The folder.

        Raises:
            OSError: the previous checkpoint could not be written.
        """
        folder = os.path.join(self._options.output_dir, BEST_FOLDER)
        self._start((folder, step, 1))
        return folder

    def _start(self, pending, optimizer=None, train_seconds=None):
        self.finish()
        self._pending = pending
        if self._workers.is_chief:
            arrays = copy_state(self._model, optimizer, pending[1], train_seconds)
            self._thread = threading.Thread(
                target=self._write, args=(pending, arrays), name="checkpoint"
            )
            self._thread.start()

    def _write(self, pending, arrays):
        folder, step, keep_max = pending
        try:
            bundle.write_parts(folder, step, arrays)
            if self._workers.count == 1:
                bundle.commit(folder, step, keep_max=keep_max)
        except Exception as error:  # The main thread raises it.
            self._error = error

    def finish(self) -> None:
        """Does the same as `check`, but waits until the files are complete."""
        if self._thread is not None:
            self._thread.join()
        self.check()

    def check(self) -> None:
        """Commits a checkpoint whose files are complete. A barrier for all workers.

        Raises:
            OSError: it could not be written. Earlier checkpoints are unaffected.
        """
        if self._pending is None:
            return
        is_writing = self._thread is not None and self._thread.is_alive()
        if self._workers.any_worker(is_writing):
            return
        (folder, step, keep_max), error = self._pending, self._error
        self._pending = self._thread = self._error = None
        # The barrier: after it, all workers know that the files are complete.
        has_failed = self._workers.any_worker(error is not None)
        if error is not None:
            raise error
        if has_failed:
            raise OSError(
                f"The chief could not write the checkpoint of step {step} to {folder}; "
                "see its own error message."
            )
        if self._workers.is_chief and self._workers.count > 1:
            bundle.commit(folder, step, keep_max=keep_max)


def state_variables(model: Any, optimizer: Any) -> dict[str, Any]:
    """Returns {checkpoint name: variable} of weights, slots and the loss scale.

    Slots are called WEIGHT/adam_m and WEIGHT/adam_v, as in the release. Those of LAMB
    are called WEIGHT/lamb_m and WEIGHT/lamb_v, so that a run cannot resume with the
    other optimizer unnoticed. Without an optimizer there are only weights.
    """
    weights = checkpoint_names.checkpoint_variables(model)
    state = dict(weights)
    if optimizer is None:
        return state
    name_by_id = {id(variable): name for name, variable in weights.items()}
    for slot, variables in optimizer.slots().items():
        for weight, variable in zip(model.trainable_variables, variables, strict=True):
            state[f"{name_by_id[id(weight)]}/{slot}"] = variable
    if optimizer.loss_scale is not None:
        state[checkpoint_names.LOSS_SCALE] = optimizer.loss_scale.scale
        state[checkpoint_names.LOSS_SCALE_STEPS] = optimizer.loss_scale.steps
    return state


def copy_state(
    model: Any, optimizer: Any, step: int, train_seconds: float | None = None
) -> dict[str, Any]:
    """Returns {checkpoint name: array} of `state_variables`, step and time."""
    arrays = {
        name: variable.value.numpy()
        for name, variable in state_variables(model, optimizer).items()
    }
    arrays[checkpoint_names.GLOBAL_STEP] = np.int64(step)
    if train_seconds is not None:
        arrays[checkpoint_names.TRAIN_SECONDS] = np.float64(train_seconds)
    return arrays


def remove_leftovers(output_dir: str) -> None:
    """Removes unfinished files of killed runs; call it before the first step.

    Raises:
        OSError: a file cannot be removed.
    """
    for folder in (output_dir, os.path.join(output_dir, BEST_FOLDER)):
        files.remove_leftovers(folder)
        bundle.remove_leftovers(folder)


def restore(output_dir: str, model: Any, optimizer: Any) -> int | None:
    """Loads weights, slots and step of the latest checkpoint of a run.

    Args:
        output_dir: folder of the run.
        model: built model.
        optimizer: built optimizer; None: do not load the slots.

    Returns:
        Finished optimizer steps; None if there is no checkpoint.

    Raises:
        ValueError: the checkpoint lacks a weight or slot, or a shape differs.
    """
    prefix = bundle.latest(output_dir)
    if prefix is None:
        return None
    state = state_variables(model, optimizer)
    shapes = bundle.read_names_and_shapes(prefix)
    name = checkpoint_names.GLOBAL_STEP
    missing = [name for name in (*state, name) if name not in shapes]
    if missing:
        raise ValueError(
            f"Cannot resume from {prefix}: it lacks {len(missing)} tensors of this "
            f"model and optimizer, such as {missing[0]}. To start from its weights, "
            "pass it as --init_checkpoint together with a new --output_dir."
        )
    step = int(bundle.read(prefix, [name])[name])
    read_each = functools.partial(bundle.read_each, prefix)
    source_module.assign(prefix, shapes, read_each, state)
    if optimizer is not None:
        optimizer.iterations.assign(step)
    logger.info("Restored %s at step %d.", prefix, step)
    return step


def read_train_seconds(output_dir: str) -> float:
    """Returns the seconds that a run has used; 0 if its checkpoint has no such time."""
    prefix = bundle.latest(output_dir)
    name = checkpoint_names.TRAIN_SECONDS
    if prefix is None or name not in bundle.read_names_and_shapes(prefix):
        return 0.0
    return float(bundle.read(prefix, [name])[name])
