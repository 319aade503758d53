"""The part of the server that computes: a version of a model, and the queue to it.

A call of the model computes a limited number of rows. A request with more rows goes to
the end of the queue in between, so that it does not delay the others; small requests to
the same signature are computed together. A row above the limit, such as a long context,
cannot be divided: a second thread computes these rows.
"""

import concurrent.futures
import dataclasses
import os
import queue
import threading
import time
from collections.abc import Callable

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.serving import loaded_model
from bert_tf.serving import versions
from bert_tf.serving import warm_up

Columns = loaded_model.Columns
# What pads answers, by kind of data type; others: 0.
FILL = {"O": b"", "i": -1}
# Of a call; as many positions as an export computes at once.
_MAX_POSITIONS = 8192
_MAX_ROWS = 64
_BATCH_SECONDS = 0.002  # How long a request waits for others.
_NUM_SPECIAL = 3  # [CLS] A [SEP] B [SEP]
# In UTF-8. Of Chinese that is exact; English has more, punctuation has fewer.
_BYTES_PER_PIECE = 3


class ServedModel(loaded_model.LoadedModel):
    """A version of a model in memory, which has answered its warm-up requests.

    Raises:
        ImportError: OpenVINO is not installed.
        OSError: the SavedModel cannot be loaded, or fails its warm-up requests.
        ValueError: OpenVINO cannot compute it, it has no signatures, or its task.json
            is damaged.
    """

    def __init__(
        self,
        export_dir: str,
        backend: str = fine_tuning_options.TENSORFLOW,
        dtype: str = "float32",
        version: int = 1,
    ):
        self.version = version
        self._export_dir = export_dir
        extra = os.path.join(export_dir, warm_up.PATH[0])
        self.task = companion_files.read_task(extra)
        for name, least in (("max_seq_length", _NUM_SPECIAL), ("doc_stride", 0)):
            value = self.task.get(name, least)
            if type(value) is not int or value < least:
                raise ValueError(
                    f"{extra}/task.json: {name} is {value!r:.80}, expected a whole "
                    f"number of at least {least}; export the model again."
                )
        self.vocabulary = companion_files.read_vocabulary(extra)
        if backend == fine_tuning_options.OPENVINO:
            # Needs Keras, which TensorFlow does without.
            from bert_tf.serving import openvino_model

            super().__init__(openvino_model.load(export_dir, dtype))
        else:
            super().__init__(loaded_model.load(export_dir))
        if not self.signatures:
            raise ValueError(
                f"{os.path.join(export_dir, versions.MODEL_FILE)} has no signature; "
                "expected a model written by bert_tf export."
            )
        self.warm_up()

    def warm_up(self) -> None:
        """Answers the warm-up requests; raises OSError if the model cannot."""
        path = os.path.join(self._export_dir, *warm_up.PATH)
        for name, inputs in warm_up.read(path) if files.exists(path) else []:
            try:
                self.compute(name, inputs)
            except (OSError, ValueError) as error:
                raise OSError(
                    f"{self._export_dir} failed a warm-up request to its signature "
                    f"{name}: {error}."
                ) from error

    def positions(self, inputs: Columns) -> np.ndarray:
        """Returns the positions that each row costs, estimated for texts: int64 [B]."""
        if "input_ids" in inputs:
            num_rows, width = inputs["input_ids"].shape
            return np.full(num_rows, width)
        pieces = np.full([1, 1], _NUM_SPECIAL)  # [B, 1], or [B, endings].
        for column in inputs.values():
            sizes = np.vectorize(len, otypes=[int])(column)
            pieces = pieces + -(-np.atleast_2d(sizes.T).T // _BYTES_PER_PIECE)
        length = self.task.get("max_seq_length", 512)
        positions = np.minimum(pieces, length)
        if stride := self.task.get("doc_stride"):  # Of overlapping windows.
            positions += -(-np.maximum(pieces - length, 0) // stride) * length
        return positions.sum(axis=1)


@dataclasses.dataclass(eq=False)
class Job:
    """A request to a model."""

    model: ServedModel
    signature: loaded_model.Signature
    inputs: Columns  # [B, ...]; texts as bytes.
    encode: Callable[[Columns], bytes] = lambda outputs: b""  # Makes the answer.
    num_done: int = 0  # Rows that were computed, and their outputs.
    parts: list[Columns] = dataclasses.field(default_factory=list)
    seconds: float = 0.0  # Of the calls of the model.
    # Gets the outputs of all rows.
    outputs: concurrent.futures.Future[Columns] = dataclasses.field(
        default_factory=concurrent.futures.Future
    )

    def __post_init__(self):
        self.positions = self.model.positions(self.inputs)

    def fits(self, other: "Job") -> bool:
        """Returns whether both can be computed in one call."""
        # Texts of other requests would widen ragged answers.
        is_alike = self.model is other.model and not self.signature.ragged_answers
        shapes = [
            {name: column.shape[1:] for name, column in job.inputs.items()}
            for job in (self, other)
        ]
        is_same = self.signature.name == other.signature.name
        return is_alike and is_same and shapes[0] == shapes[1]


class Queue:
    """Jobs that wait, and two threads that compute them.

    Args:
        fail: called with a message if the model can no longer answer.
    """

    def __init__(self, fail: Callable[[str], object]):
        self._fail = fail
        self._short: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._long: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.busy_since: float | None = None  # Of the first thread's call.
        for arrived in (self._short, self._long):
            # A daemon, because a call of the model cannot be interrupted.
            thread = threading.Thread(target=self._run, args=[arrived], daemon=True)
            thread.start()

    def put(self, job: Job) -> None:
        """Adds a job, whose future gets its outputs unless it is cancelled before."""
        is_long = job.positions[job.num_done :][:1].sum() > _MAX_POSITIONS
        (self._long if is_long else self._short).put(job)

    def busy_seconds(self) -> float:
        """Returns how long the first thread has been in one call of the model.

        The calls of the second one may take minutes.
        """
        started = self.busy_since
        return 0.0 if started is None else time.monotonic() - started

    def _run(self, arrived):
        """Computes jobs until an error, of the model or of this code."""
        waiting: list[Job] = []
        try:
            while True:
                if not waiting:
                    waiting.append(arrived.get())
                time.sleep(_BATCH_SECONDS)
                while not arrived.empty():
                    waiting.append(arrived.get())
                waiting = [job for job in waiting if not job.outputs.cancelled()]
                batch = _batch(waiting)
                waiting = [job for job in waiting if job not in batch]
                if arrived is self._short:
                    self.busy_since = time.monotonic()
                if batch:
                    self._compute(batch)
                if arrived is self._short:
                    self.busy_since = None
        except Exception as error:
            reason = " ".join(str(error).split())[:300].rstrip(".")
            self._fail(f"The model can no longer answer: {reason}.")

    def _compute(self, batch):
        """Computes the next rows of jobs; `batch` has their number for each job."""
        first, started = next(iter(batch)), time.monotonic()
        inputs = {
            name: np.concatenate(
                [
                    job.inputs[name][job.num_done :][:count]
                    for job, count in batch.items()
                ]
            )
            for name in first.inputs
        }
        try:
            outputs = first.model.compute(first.signature.name, inputs)
        except (OSError, ValueError) as error:
            if len(batch) > 1:  # One bad request must not fail the others.
                for job, count in batch.items():
                    self._compute({job: count})
                return
            if isinstance(error, ValueError) and first.num_done:
                place = f"counted from row {first.num_done} of the request"
                error = ValueError(f"{error} ({place})")
            if first.outputs.set_running_or_notify_cancel():
                first.outputs.set_exception(error)
            if isinstance(error, OSError):
                first.model.warm_up()  # Its error ends the server.
            return
        start = 0
        for job, count in batch.items():
            rows, start = slice(start, start + count), start + count
            job.parts.append({name: column[rows] for name, column in outputs.items()})
            job.num_done += count
            job.seconds += time.monotonic() - started
            if job.num_done < len(job.positions):
                self.put(job)
            elif job.outputs.set_running_or_notify_cancel():
                job.outputs.set_result(_joined(job.parts))


def _batch(waiting):
    """Returns the first job and those that fit to it, with the number of their rows."""
    batch: dict[Job, int] = {}
    num_rows, num_positions = _MAX_ROWS, _MAX_POSITIONS
    for job in waiting:
        costs = job.positions[job.num_done :]
        has_room = np.cumsum(costs) <= num_positions
        count = int(np.count_nonzero(has_room[:num_rows]))
        if not batch:
            count = max(count, min(len(costs), 1))
        elif count < len(costs) or not job.fits(waiting[0]):
            continue
        batch[job] = count
        num_rows -= count
        num_positions -= int(costs[:count].sum())
    return batch


def _joined(parts):
    """Returns the outputs of all rows, padded to the widest."""
    joined = {}
    for name, first in parts[0].items():
        arrays = [part[name] for part in parts]
        shape = np.max([array.shape for array in arrays], axis=0)
        shape[0] = sum(map(len, arrays))
        joined[name] = np.full(shape, FILL.get(first.dtype.kind, 0), first.dtype)
        start = 0
        for array in arrays:
            places = [slice(start, start + len(array)), *map(slice, array.shape[1:])]
            joined[name][tuple(places)] = array
            start += len(array)
    return joined


def num_bytes(columns: Columns) -> int:
    """Returns the size of inputs or outputs."""
    texts = [column for column in columns.values() if column.dtype == object]
    size = sum(column.nbytes for column in columns.values())
    return size + sum(len(text) for column in texts for text in column.flat)
