"""The part of the server that computes: a loaded model, and the queue of its requests.

Requests are computed in slices. After each slice, a request goes to the end of the
queue, so that a large one does not delay the others. Slices of several requests to the
same signature are computed together. A row that is larger than a slice, such as a long
context, cannot be divided: a second thread computes these rows.
"""

import collections
import concurrent.futures
import os
import threading
import time
from collections.abc import Callable

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.serving import client
from bert_tf.serving import saved_signatures
from bert_tf.serving import warm_up

Columns = dict[str, np.ndarray]
# What pads answers, by kind of data type; others: 0.
FILL = {"O": b"", "i": -1}
# Positions of a slice, as many as an export computes at once by default.
_SLICE = 8192
# Some answers are as wide as that to the longest text. A limit on rows times positions
# of the longest row, so that one long text does not inflate the answers to others.
_MAX_PADDED = 2**16
_NUM_SPECIAL = 3  # [CLS] A [SEP] B [SEP]
# In UTF-8. Of Chinese that is exact; English has more, punctuation has fewer.
_BYTES_PER_PIECE = 3


class RequestError(Exception):
    """Why a request gets no answer, with a status and headers of HTTP."""

    def __init__(self, status: int, message: str, **headers: str):
        super().__init__(message)
        self.status = status
        self.headers = headers


class LoadedModel:
    """A version of a model in memory, which has answered its warm-up requests.

    Raises:
        ImportError: OpenVINO is not installed.
        OSError: the SavedModel cannot be loaded, or fails its warm-up requests.
        ValueError: OpenVINO cannot compute it, or it has no signatures.
    """

    def __init__(
        self,
        export_dir: str,
        backend: str = fine_tuning_options.TENSORFLOW,
        dtype: str = "float32",
        version: int = 1,
    ):
        self.version = version
        self.signatures = saved_signatures.read(export_dir)
        extra = os.path.join(export_dir, warm_up.PATH[0])
        self.task = companion_files.read_task(extra)
        self.vocabulary = companion_files.read_vocabulary(extra)
        if backend == fine_tuning_options.OPENVINO:
            # Needs Keras, which TensorFlow does without.
            from bert_tf.serving import openvino_model

            self._model = openvino_model.load(export_dir, dtype)
        else:
            self._model = client.load(export_dir)
        self._export_dir = export_dir
        self.warm_up()

    def warm_up(self) -> None:
        """Answers the warm-up requests; raises OSError if the model cannot."""
        path = os.path.join(self._export_dir, *warm_up.PATH)
        for name, inputs in warm_up.read(path) if files.exists(path) else []:
            try:
                self.compute(name, inputs)
            except RequestError as error:
                raise OSError(
                    f"{self._export_dir} failed a warm-up request to its signature "
                    f"{name}: {error}."
                ) from error

    def compute(self, signature: str, inputs: Columns) -> Columns:
        """Returns the outputs of a signature, name -> array [B, ...].

        Raises:
            RequestError: with status 400 if the inputs are to blame, otherwise 500.
        """
        import tensorflow as tf

        try:
            columns = {name: tf.constant(column) for name, column in inputs.items()}
            outputs = self._model.signatures[signature](**columns)
        except (tf.errors.OpError, ValueError) as error:
            is_invalid = isinstance(error, tf.errors.InvalidArgumentError)
            reason = client.refusal_reason(error)[:200]
            raise RequestError(400 if is_invalid else 500, reason) from error
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
    """A request in the queue.

    Attributes:
        model, signature, inputs: what to compute; inputs [B, ...], texts as bytes.
        encode: makes the answer of the outputs.
        positions: int64 [B], see `LoadedModel.positions`.
        future: gets the outputs, or a RequestError; cancelled if the client is gone.
        queued: when the job entered the queue.
        queue_seconds, compute_seconds: the time before the first slice, and in slices.
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
        self.future: concurrent.futures.Future = concurrent.futures.Future()
        self.queued = self.queue_seconds = self.compute_seconds = 0.0
        self._ends = collections.deque(_slice_ends(self.positions.tolist()))
        self._slice = slice(0, self._ends.popleft())
        self._outputs: list[Columns] = []

    def next_inputs(self) -> Columns:
        """Returns the inputs of the next slice."""
        return {name: column[self._slice] for name, column in self.inputs.items()}

    def next_positions(self) -> np.ndarray:
        """Returns the positions of each row of the next slice."""
        return self.positions[self._slice]

    def fits(self, others: "list[Job]", max_rows: int) -> bool:
        """Returns whether the next slice can be computed with those of other jobs."""
        if not others:
            return True
        first, second = (
            {name: column.shape[1:] for name, column in job.inputs.items()}
            for job in (self, others[0])
        )
        is_same = self.model is others[0].model and first == second
        if not is_same or self.signature != others[0].signature:
            return False
        rows = np.concatenate([job.next_positions() for job in (self, *others)])
        longest = rows.max(initial=0)
        return len(rows) <= max_rows and _is_slice(len(rows), rows.sum(), longest)

    def add(self, outputs: Columns) -> None:
        """Takes the outputs of the next slice, and answers after the last one."""
        self._outputs.append(outputs)
        if self._ends:
            self._slice = slice(self._slice.stop, self._ends.popleft())
            return
        parts, self._outputs = self._outputs, []
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(_joined(parts))


def num_bytes(columns: Columns) -> int:
    """Returns the size of inputs or outputs."""
    texts = [column for column in columns.values() if column.dtype == object]
    size = sum(column.nbytes for column in columns.values())
    return size + sum(len(text) for column in texts for text in column.flat)


def _is_slice(num_rows, total, longest):
    return total <= _SLICE and num_rows * longest <= _MAX_PADDED


def _slice_ends(positions):
    """Yields the end of each slice; a request without rows has one slice."""
    start = total = longest = 0
    for row, size in enumerate(positions):
        total, longest = total + size, max(longest, size)
        if row > start and not _is_slice(row + 1 - start, total, longest):
            yield row
            start, total, longest = row, size, size
    yield len(positions)


def _joined(parts):
    """Returns the outputs of all slices, padded to the widest."""
    outputs = {}
    for name, first in parts[0].items():
        arrays = [part[name] for part in parts]
        if first.ndim > 1:
            width = max(array.shape[1] for array in arrays)
            fill = FILL.get(first.dtype.kind, 0)
            arrays = [_widened(array, width, fill) for array in arrays]
        outputs[name] = np.concatenate(arrays)
    return outputs


def _widened(array, width, fill):
    padded = np.full([len(array), width, *array.shape[2:]], fill, array.dtype)
    padded[:, : array.shape[1]] = array
    return padded


class Queue:
    """Jobs that wait or are being computed, and the threads that compute them.

    Args:
        max_jobs: how many there may be.
        max_rows: rows of several jobs to compute together.
        batch_seconds: how long a job waits for others.
        fail: called with an error if the model can no longer answer.
    """

    def __init__(
        self,
        *,
        max_jobs: int,
        max_rows: int,
        batch_seconds: float,
        fail: Callable[[Exception], object],
    ):
        self._max_jobs = max_jobs
        self._max_rows = max_rows
        self._batch_seconds = batch_seconds
        self._fail = fail
        self._num_jobs = 0
        self._changed = threading.Condition()
        # Each has a thread: rows that are larger than a slice, and all others.
        self._waiting: dict[bool, list[Job]] = {False: [], True: []}
        self._busy_since: dict[bool, float] = {}
        for is_long in self._waiting:
            threading.Thread(target=self._run, args=[is_long], daemon=True).start()

    def size(self) -> int:
        """Returns the number of jobs."""
        return self._num_jobs

    def busy_seconds(self) -> float:
        """Returns how long the model has been computing one batch.

        Rows that are larger than a slice may take minutes, so they do not count.
        """
        started = self._busy_since.get(False)
        return 0.0 if started is None else time.monotonic() - started

    def check_room(self) -> None:
        """Raises RequestError if the queue is full."""
        if self._num_jobs >= self._max_jobs:
            reason = f"The queue is full ({self._max_jobs} requests); try again later."
            raise RequestError(429, reason, Retry_After="1")

    def put(self, job: Job) -> None:
        """Adds a job; raises RequestError if the queue is full."""
        self.check_room()
        self._num_jobs += 1
        job.queued = time.perf_counter()
        self._add(job)

    def remove(self, job: Job) -> None:
        """Removes a job with or without an answer; called once for each job.

        Frees its inputs, unless a slice of it is being computed.
        """
        job.future.cancel()
        self._num_jobs -= 1
        with self._changed:
            for jobs in self._waiting.values():
                if job in jobs:
                    jobs.remove(job)
                    job.inputs.clear()

    def _add(self, job):
        with self._changed:
            if job.future.done():
                return
            is_long = job.next_positions().max(initial=0) > _SLICE
            self._waiting[is_long].append(job)
            self._changed.notify_all()

    def _run(self, is_long):
        try:
            while True:
                self._compute_next(is_long)
        except Exception as error:
            reason = " ".join(str(error).split())[:300].rstrip(".")
            self._fail(OSError(f"The model can no longer answer: {reason}."))

    def _compute_next(self, is_long):
        jobs = self._take(self._waiting[is_long], 1 if is_long else self._max_rows)
        self._busy_since[is_long] = time.monotonic()
        if jobs:  # Their clients may have gone.
            _compute(jobs)
        del self._busy_since[is_long]
        for job in jobs:
            self._add(job)

    def _take(self, waiting, max_rows):
        """Waits for a job, and returns it with those that fit the same batch."""
        jobs: list[Job] = []
        with self._changed:
            self._changed.wait_for(lambda: waiting)
            self._changed.wait_for(
                lambda: len(waiting) >= max_rows, self._batch_seconds
            )
            for job in [*waiting]:
                if job.fits(jobs, max_rows):
                    waiting.remove(job)
                    jobs.append(job)
        return jobs


def _compute(jobs):
    """Computes the next slices of some jobs together."""
    started = time.perf_counter()
    for job in jobs:
        job.queue_seconds = job.queue_seconds or started - job.queued
    columns = [job.next_inputs() for job in jobs]
    inputs = {
        name: np.concatenate([column[name] for column in columns])
        for name in columns[0]
    }
    try:
        outputs = jobs[0].model.compute(jobs[0].signature, inputs)
    except RequestError as error:
        if len(jobs) > 1:  # One bad request must not fail the others.
            for job in jobs:
                _compute([job])
            return
        if jobs[0].future.set_running_or_notify_cancel():
            jobs[0].future.set_exception(error)
        if error.status == 500:
            jobs[0].model.warm_up()  # Its error ends the server.
        return
    sizes = [len(job.next_positions()) for job in jobs]
    for job, end, size in zip(jobs, np.cumsum(sizes), sizes, strict=True):
        job.compute_seconds += time.perf_counter() - started
        job.add({name: rows[end - size : end] for name, rows in outputs.items()})
