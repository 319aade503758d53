"""Checkpoints that are written while the training goes on."""

import os
import threading

from bert_tf.checkpoints.release import rotation
from bert_tf.training import state

BEST_FOLDER = "best"


class CheckpointWriter:
    """Writes one checkpoint of a run after the other in a thread.

    What is to be written is copied into the host's memory first, so the next step may
    change the weights. Of several workers the chief alone writes, and a checkpoint
    counts, by its name in the file `checkpoint`, only once all have met after it was
    written.

    Args:
        model: built `heads.TaskModel`.
        optimizer: built optimizer.
        options: `TrainingOptions`; of it output_dir and keep_checkpoint_max.
        workers: `workers.Workers`.

    Example:
        with CheckpointWriter(model, optimizer, options, workers) as writer:
            writer.save(10)
            ...  # Steps; now and then:
            writer.check()
    """

    def __init__(self, model, optimizer, options, workers):
        self._model = model
        self._optimizer = optimizer
        self._options = options
        self._workers = workers
        self._thread = None
        self._error = None
        # Folder, step and keep_max of what does not count yet; the same on all workers.
        self._pending = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused_error):
        if kind is None:
            self.finish()
        elif self._thread is not None:
            # The run ends with its own error; what is being written may get done.
            self._thread.join()

    def save(self, step, *, train_seconds=None):
        """Begins to write weights, slots and step; waits for what is being written.

        Args:
            step: int, finished optimizer steps.
            train_seconds: time used by a run that has a time budget, or None.

        Raises:
            OSError: the checkpoint before could not be written.
        """
        folder, keep_max = self._options.output_dir, self._options.keep_checkpoint_max
        self._start(
            (folder, step, keep_max),
            lambda: state.copies(
                self._model, self._optimizer, step, train_seconds=train_seconds
            ),
        )

    def save_best(self, step):
        """Begins to write the weights into the folder best/, instead of earlier ones.

        Returns:
            str: the folder.

        Raises:
            OSError: the checkpoint before could not be written.
        """
        folder = os.path.join(self._options.output_dir, BEST_FOLDER)
        self._start((folder, step, 1), lambda: state.copies(self._model, None, step))
        return folder

    def _start(self, pending, copies):
        self.finish()
        self._pending = pending
        if self._workers.is_chief:
            self._thread = threading.Thread(
                target=self._write, args=(copies(),), name="checkpoint"
            )
            self._thread.start()

    def _write(self, copies):
        folder, step, keep_max = self._pending
        try:
            rotation.write_parts(folder, step, copies)
            if self._workers.count == 1:
                rotation.commit(folder, step, keep_max=keep_max)
        except Exception as error:  # Raised where the run can end with it.
            self._error = error

    def check(self):
        """Has a checkpoint that is written count; raises what its writing raised.

        With several workers this is a meeting.

        Raises:
            OSError: it could not be written; earlier ones are as they were.
        """
        if self._pending is None:
            return
        is_writing = self._thread is not None and self._thread.is_alive()
        if not self._workers.any(is_writing):
            self._settle()

    def finish(self):
        """As `check`, but waits until the checkpoint is written."""
        if self._pending is None:
            return
        if self._thread is not None:
            self._thread.join()
        self._settle()

    def _settle(self):
        (folder, step, keep_max), self._pending = self._pending, None
        error, self._error = self._error, None
        self._thread = None
        # The meeting after which it counts.
        has_failed = self._workers.any(error is not None)
        if error is not None:
            raise error
        if has_failed:
            raise OSError(
                f"The chief could not write the checkpoint of step {step} to {folder}; "
                "its own message says why."
            )
        if self._workers.is_chief and self._workers.count > 1:
            rotation.commit(folder, step, keep_max=keep_max)
