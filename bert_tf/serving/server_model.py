"""The part of the server that computes: a loaded model, and the queue of its requests.

Requests are computed in slices. The next slice of a request enters the queue after the
previous one, so that a large request does not delay the others. Slices of several
requests to the same signature are computed together. A row that is larger than a slice,
such as a long context, cannot be divided: a second thread computes these rows.
"""

import asyncio
import concurrent.futures
import os
import queue
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator

import numpy as np
from starlette.exceptions import HTTPException

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.serving import client
from bert_tf.serving import saved_signatures
from bert_tf.serving import versions
from bert_tf.serving import warm_up

Columns = dict[str, np.ndarray]
# What pads answers, by kind of data type; others: 0.
FILL = {"O": b"", "i": -1}
# Positions of a slice, as many as an export computes at once by default.
_SLICE = 8192
_SLICE_ROWS = 64
_BATCH_SECONDS = 0.002  # How long a request waits for others.
_NUM_SPECIAL = 3  # [CLS] A [SEP] B [SEP]
# In UTF-8. Of Chinese that is exact; English has more, punctuation has fewer.
_BYTES_PER_PIECE = 3


class LoadedModel:
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

            self._model = openvino_model.load(export_dir, dtype)
        else:
            self._model = client.load(export_dir)
        self.signatures = saved_signatures.read(self._model)
        if not self.signatures:
            raise ValueError(
                f"{os.path.join(export_dir, versions.MODEL_FILE)} has no signature; "
                "expected a model written by bert_tf export."
            )
        self._export_dir = export_dir
        self.warm_up()

    def warm_up(self) -> None:
        """Answers the warm-up requests; raises OSError if the model cannot."""
        path = os.path.join(self._export_dir, *warm_up.PATH)
        for name, inputs in warm_up.read(path) if files.exists(path) else []:
            try:
                self.compute(name, inputs)
            except HTTPException as error:
                raise OSError(
                    f"{self._export_dir} failed a warm-up request to its signature "
                    f"{name}: {error.detail}."
                ) from error

    def compute(self, signature: str, inputs: Columns) -> Columns:
        """Returns the outputs of a signature, name -> array [B, ...].

        Raises:
            HTTPException: status 400 if the inputs are to blame, otherwise 500.
        """
        import tensorflow as tf

        try:
            columns = {name: tf.constant(column) for name, column in inputs.items()}
            outputs = self._model.signatures[signature](**columns)
        except (tf.errors.OpError, ValueError) as error:
            is_invalid = isinstance(error, tf.errors.InvalidArgumentError)
            reason = client.refusal_reason(error)[:200]
            raise HTTPException(400 if is_invalid else 500, reason) from error
        return {name: value.numpy() for name, value in outputs.items()}

    def positions(self, inputs: Columns) -> np.ndarray:
        """Returns the positions that each row costs, estimated for texts: int64 [B]."""
        if "input_ids" in inputs:
            num_rows, width = inputs["input_ids"].shape
            return np.full(num_rows, width)
        pieces = np.zeros([1, 1], int)  # [B, 1], or [B, endings].
        for column in inputs.values():
            sizes = np.vectorize(len, otypes=[int])(column)
            pieces = pieces + -(-np.atleast_2d(sizes.T).T // _BYTES_PER_PIECE)
        length = self.task.get("max_seq_length", 512)
        beyond = np.maximum(pieces + _NUM_SPECIAL - length, 0)
        positions = pieces + _NUM_SPECIAL - beyond
        if stride := self.task.get("doc_stride"):
            positions += -(-beyond // stride) * length  # Of overlapping windows.
        return positions.sum(axis=1)


class Job:
    """A request to a model.

    Attributes:
        model, signature, inputs: what to compute; inputs [B, ...], texts as bytes.
        encode: makes the answer of the outputs.
        positions: int64 [B], see `LoadedModel.positions`.
        queue_seconds, compute_seconds: the time between slices, and in them.
    """

    def __init__(
        self,
        model: LoadedModel,
        signature: str,
        inputs: Columns,
        encode: Callable[[Columns], bytes] = lambda outputs: b"",
    ):
        self.model = model
        self.signature = signature
        self.inputs = inputs
        self.encode = encode
        self.positions = model.positions(inputs)
        self.queue_seconds = self.compute_seconds = 0.0


class _Slice:
    """Rows of a job that are computed at once; `outputs` gets their outputs."""

    def __init__(self, job: Job, rows: slice):
        self.job = job
        self.inputs = {name: column[rows] for name, column in job.inputs.items()}
        self.positions = job.positions[rows]
        self.outputs: concurrent.futures.Future[Columns] = concurrent.futures.Future()
        # Slices of the same kind are computed together. Texts of other requests would
        # widen ragged answers.
        shapes = {name: part.shape[1:] for name, part in self.inputs.items()}
        is_ragged = job.model.signatures[job.signature].ragged_answers
        self.kind = (job.model, job.signature, shapes, job if is_ragged else None)


def num_bytes(columns: Columns) -> int:
    """Returns the size of inputs or outputs."""
    texts = [column for column in columns.values() if column.dtype == object]
    size = sum(column.nbytes for column in columns.values())
    return size + sum(len(text) for column in texts for text in column.flat)


def _is_slice(positions):
    return len(positions) <= _SLICE_ROWS and positions.sum() <= _SLICE


def _slices(positions: np.ndarray) -> Iterator[slice]:
    """Yields the rows of each slice; a request without rows has one slice."""
    start = 0
    for row in range(1, len(positions)):
        if not _is_slice(positions[start : row + 1]):
            yield slice(start, row)
            start = row
    yield slice(start, len(positions))


def _joined(parts):
    """Returns the outputs of all slices, padded to the widest."""
    outputs = {}
    for name, first in parts[0].items():
        arrays = [part[name] for part in parts]
        shape = np.max([array.shape for array in arrays], axis=0)
        shape[0] = sum(map(len, arrays))
        outputs[name] = np.full(shape, FILL.get(first.dtype.kind, 0), first.dtype)
        end = 0
        for array in arrays:
            begin, end = end, end + len(array)
            inner = (slice(size) for size in array.shape[1:])
            outputs[name][(slice(begin, end), *inner)] = array
    return outputs


class Queue:
    """Jobs that wait or are being computed; for one event loop.

    Args:
        max_jobs: how many there may be.
        fail: called with an error if the model can no longer answer.
    """

    def __init__(self, max_jobs: int, fail: Callable[[Exception], object]):
        self._max_jobs = max_jobs
        self._num_jobs = 0
        self._short, self._long = _Worker(fail), _Worker(fail)

    def size(self) -> int:
        """Returns the number of jobs."""
        return self._num_jobs

    def busy_seconds(self) -> float:
        """Returns how long the model has been computing one batch.

        Rows that are larger than a slice may take minutes, so they do not count.
        """
        started = self._short.busy_since
        return 0.0 if started is None else time.monotonic() - started

    def check_room(self) -> None:
        """Raises HTTPException if the queue is full."""
        if self._num_jobs >= self._max_jobs:
            reason = f"The queue is full ({self._max_jobs} requests); try again later."
            raise HTTPException(429, reason)

    async def compute(self, job: Job) -> Columns:
        """Returns the outputs of a job, name -> array [B, ...].

        Raises:
            HTTPException: the queue is full, or the model refuses the inputs.
        """
        self.check_room()
        self._num_jobs += 1
        try:
            outputs, queued = [], time.monotonic()
            for rows in _slices(job.positions):
                part = _Slice(job, rows)
                is_long = part.positions.max(initial=0) > _SLICE
                (self._long if is_long else self._short).arrived.put(part)
                outputs.append(await asyncio.wrap_future(part.outputs))
            taken = time.monotonic() - queued
            job.queue_seconds = taken - job.compute_seconds
            return _joined(outputs)
        finally:
            self._num_jobs -= 1


class _Worker:
    """A thread that computes the slices that wait, and those that fit together."""

    def __init__(self, fail: Callable[[Exception], object]):
        self._fail = fail
        self.arrived: queue.SimpleQueue[_Slice] = queue.SimpleQueue()
        self._waiting: list[_Slice] = []
        self.busy_since: float | None = None
        # A daemon, because a call of the model cannot be interrupted.
        threading.Thread(target=self._compute_all, daemon=True).start()

    def _compute_all(self):
        """Computes slices until an error, of the model or of this code."""
        try:
            while True:
                if not self._waiting:
                    self._waiting.append(self.arrived.get())
                time.sleep(_BATCH_SECONDS)
                while not self.arrived.empty():
                    self._waiting.append(self.arrived.get())
                self._compute_next()
        except Exception as error:
            reason = " ".join(str(error).split())[:300].rstrip(".")
            self._fail(OSError(f"The model can no longer answer: {reason}."))

    def _compute_next(self):
        """Computes the first slice that waits, and others that fit to it."""
        parts: list[_Slice] = []
        waiting, self._waiting = self._waiting, []
        positions = np.empty(0, int)
        for part in waiting:
            together = np.concatenate([positions, part.positions])
            fits = not parts or (part.kind == parts[0].kind and _is_slice(together))
            if not fits:
                self._waiting.append(part)
            # From now on it cannot be cancelled.
            elif part.outputs.set_running_or_notify_cancel():
                parts.append(part)
                positions = together
        if not parts:
            return
        self.busy_since = started = time.monotonic()
        outputs = [HTTPException(500, "The model cannot answer.")] * len(parts)
        try:
            outputs = _computed(parts)
        finally:
            self.busy_since = None
            for part, output in zip(parts, outputs, strict=True):
                part.job.compute_seconds += time.monotonic() - started
                if isinstance(output, Exception):
                    part.outputs.set_exception(output)
                else:
                    part.outputs.set_result(output)


def _computed(parts):
    """Returns the outputs of slices that fit together, or the error of a slice."""
    model, signature = parts[0].job.model, parts[0].job.signature
    inputs = {
        name: np.concatenate([part.inputs[name] for part in parts])
        for name in parts[0].inputs
    }
    try:
        outputs = model.compute(signature, inputs)
    except HTTPException as error:
        if len(parts) > 1:  # One bad request must not fail the others.
            return [answer for part in parts for answer in _computed([part])]
        if error.status_code == 500:
            model.warm_up()  # Its error ends the server.
        return [error]
    ends = np.cumsum([len(part.positions) for part in parts])
    return [
        {name: rows[end - len(part.positions) : end] for name, rows in outputs.items()}
        for part, end in zip(parts, ends, strict=True)
    ]
