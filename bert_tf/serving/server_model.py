"""The part of the server that computes: a version of a model, and the queue to it.

A call of the model computes a limited number of rows. A request with more rows waits
again between its calls, so that it does not delay the others; small calls to the same
signature are computed together.
"""

import asyncio
import concurrent.futures
import dataclasses
import os
import re
import string
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.serving import export_layout
from bert_tf.serving import loaded_model
from bert_tf.tokenization import vocabulary as vocabulary_module

Columns = loaded_model.Columns
# What pads answers, by kind of data type; others: 0.
FILL: dict[str, Any] = {"O": b"", "i": -1}
# Of a call; as many positions as an export computes at once.
_MAX_POSITIONS = 8192
_MAX_ROWS = 64
_NUM_SPECIAL = 3  # [CLS] A [SEP] B [SEP]
# In UTF-8. Of Chinese that is exact, and English has more. A piece of ASCII punctuation
# has one.
_BYTES_PER_PIECE = 3
_PUNCTUATION = string.punctuation.encode()


class ServedModel(loaded_model.LoadedModel):
    """A version of a model in memory, which has answered its warm-up requests.

    Raises:
        ImportError: OpenVINO is not installed.
        OSError: the SavedModel cannot be loaded, or fails its warm-up requests.
        ValueError: OpenVINO cannot compute it, it has no signatures, or its task.json
            is damaged.
    """

    def __init__(self, export_dir: str, backend: str = fine_tuning_options.TENSORFLOW):
        above, last = os.path.split(os.path.abspath(export_dir))
        name = os.path.basename(above) if last.isdecimal() else last
        self.name = re.sub(r"[^\w.-]", "_", name) or "model"
        self.version = int(last) if last.isdecimal() else 1
        self._export_dir = export_dir
        self._read_companions(os.path.join(export_dir, export_layout.EXTRA_FOLDER))
        load = loaded_model.load
        if backend == fine_tuning_options.OPENVINO:
            # Needs Keras, which TensorFlow does without.
            from bert_tf.serving import openvino_model

            load = openvino_model.load
        super().__init__(load(export_dir))
        if not self.signatures:
            raise ValueError(
                f"{os.path.join(export_dir, export_layout.MODEL_FILE)} has no "
                "signature; expected a model written by bert_tf export."
            )
        self.warm_up()

    def _read_companions(self, folder):
        """Reads the files that `bert_tf export` puts beside the model."""
        self.task, self.vocabulary = {"max_seq_length": 512}, None
        self._is_ours = files.exists(path := os.path.join(folder, "task.json"))
        if not self._is_ours:
            return
        config = files.read_json(os.path.join(folder, "bert_config.json"))
        most = config.get("max_position_embeddings", 512)
        task = files.read_json(path, advice="export the model again")
        self.task = {"max_seq_length": most, **task}
        limits = {"max_seq_length": (_NUM_SPECIAL, most), "doc_stride": (0, 2**31)}
        for name, (least, most) in limits.items():
            value = self.task.get(name, least)
            if type(value) is not int or not least <= value <= most:
                raise ValueError(
                    f"{path}: {name} is {value!r:.80}, expected a whole number from "
                    f"{least} to {most}; export the model again."
                )
        if files.exists(path := os.path.join(folder, "vocab.txt")):
            self.vocabulary = vocabulary_module.Vocabulary.load(path)
            fingerprint = self.vocabulary.fingerprint
            if task.get("vocab_fingerprint", fingerprint) != fingerprint:
                raise ValueError(f"{path} was changed; export the model again.")

    def warm_up(self) -> None:
        """Answers the warm-up requests; raises OSError if the model cannot."""
        if not self._is_ours:
            return  # What its inputs mean is not known.
        inputs = {name: one.inputs for name, one in self.signatures.items()}
        for request in export_layout.warm_up_requests(
            inputs, self.task["max_seq_length"]
        ):
            try:
                self.compute(*request)
            except (OSError, ValueError) as error:
                raise OSError(
                    f"{self._export_dir} failed a warm-up request to its signature "
                    f"{request[0]}: {error}."
                ) from error

    def positions(self, inputs: Columns) -> np.ndarray:
        """Returns the positions that each row costs, estimated for texts: int64 [B]."""
        if "input_ids" in inputs:
            num_rows, width = inputs["input_ids"].shape
            return np.full(num_rows, width)
        pieces = np.full([1, 1], _NUM_SPECIAL)  # [B, 1], or [B, endings].
        for column in inputs.values():
            sizes = np.vectorize(_num_pieces, otypes=[int])(column)
            pieces = pieces + np.atleast_2d(sizes.T).T
        length = self.task["max_seq_length"]
        positions = np.minimum(pieces, length)
        if stride := self.task.get("doc_stride"):  # Of overlapping windows.
            stride = min(stride, length)
            positions += -(-np.maximum(pieces - length, 0) // stride) * length
        return positions.sum(axis=1)


def _num_pieces(text):
    """Estimates the word pieces of a text in UTF-8."""
    rest = len(text.translate(None, _PUNCTUATION))
    return len(text) - rest + -(-rest // _BYTES_PER_PIECE)


@dataclasses.dataclass(eq=False)
class Job:
    """A request to a model."""

    model: ServedModel
    signature: loaded_model.Signature
    inputs: Columns  # [B, ...]; texts as bytes.
    encode: Callable[[list[Columns]], bytes]  # Makes the answer of all calls' outputs.
    # Whether the answer has rows without padding, or columns, which have padding.
    is_rows: bool = False
    seconds: float = 0.0  # Of the finished calls of the model.
    called_at: float | None = None  # While the model computes it.

    def __post_init__(self):
        self.positions = self.model.positions(self.inputs)
        # Jobs of the same kind can share a call. Texts of other requests would widen
        # ragged answers.
        shapes = {name: column.shape[1:] for name, column in self.inputs.items()}
        owner = id(self) if self.signature.ragged_answers else None
        self.kind = (self.model, self.signature.name, shapes, owner)

    def num_answer_bytes(self, parts: list[Columns]) -> int:
        """Returns about how large the outputs of all calls are in the answer."""
        if self.is_rows:
            return sum(map(num_bytes, parts))
        lengths = [len(next(iter(part.values()))) for part in parts]
        rows = [num_bytes(p) / max(n, 1) for p, n in zip(parts, lengths, strict=True)]
        return int(sum(lengths) * max(rows))

    async def outputs(self, queue: "Queue") -> list[Columns]:
        """Returns the outputs of each call; a job without rows has one call."""
        outputs: list[Columns] = []
        begin = 0
        while begin < len(self.positions) or not outputs:
            costs = self.positions[begin:][:_MAX_ROWS]
            total = np.cumsum(costs)
            if self.signature.ragged_answers:  # As wide as the longest text.
                total = np.maximum.accumulate(costs) * np.arange(1, len(costs) + 1)
            count = max(1, int(np.count_nonzero(total <= _MAX_POSITIONS)))
            call = _Call(self, slice(begin, begin + count))
            try:
                outputs.append(await queue.outputs(call))
            except ValueError as error:
                place = f" (counted from row {begin} of the request)" if begin else ""
                raise ValueError(f"{error}{place}") from error
            begin += count
        return outputs


class _Call:
    """Some rows of a job."""

    def __init__(self, job: Job, rows: slice):
        self.job = job
        self.rows = rows
        self.costs = job.positions[rows]
        self.outputs = asyncio.get_running_loop().create_future()


class Queue:
    """A thread that calls the model, and the calls that wait for it.

    If the model can no longer answer, the process ends.
    """

    def __init__(self) -> None:
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._waiting: list[_Call] = []
        self._task: asyncio.Task | None = None
        self._busy_since: float | None = None

    async def outputs(self, call: _Call) -> Columns:
        """Returns the outputs of a call, which leaves the queue if it is cancelled."""
        self._waiting.append(call)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            return await call.outputs
        finally:
            if call in self._waiting:
                self._waiting.remove(call)

    def busy_seconds(self) -> float:
        """Returns how long the present call of the model has taken."""
        now = time.monotonic()
        return now - (self._busy_since or now)

    async def _run(self):
        """Computes the calls until an error, of the model or of this code."""
        run_in_thread = asyncio.get_running_loop().run_in_executor
        try:
            while self._waiting:
                calls = self._next_calls()
                self._busy_since = time.monotonic()
                for call in calls:
                    call.job.called_at = self._busy_since
                answers = await run_in_thread(self._thread, _answers, calls)
                seconds, self._busy_since = time.monotonic() - self._busy_since, None
                for call, answer in zip(calls, answers, strict=True):
                    call.job.seconds += seconds
                    call.job.called_at = None
                    if call.outputs.done():  # Its client is gone.
                        continue
                    if isinstance(answer, Exception):
                        call.outputs.set_exception(answer)
                    else:
                        call.outputs.set_result(answer)
        except Exception as error:
            reason = " ".join(str(error).split())[:300].rstrip(".")
            end_process(f"The model can no longer answer: {reason}.", 1)

    def _next_calls(self):
        """Removes the first call, and those that fit to it, from the queue."""
        calls = [self._waiting.pop(0)]
        for call in [*self._waiting]:
            costs = np.concatenate([one.costs for one in (*calls, call)])
            has_room = len(costs) <= _MAX_ROWS and costs.sum() <= _MAX_POSITIONS
            if has_room and call.job.kind == calls[0].job.kind:
                calls.append(call)
                self._waiting.remove(call)
        return calls


def _answers(calls):
    """Returns the outputs, or the error, of each call."""
    job = calls[0].job
    inputs = {
        name: np.concatenate([call.job.inputs[name][call.rows] for call in calls])
        for name in job.inputs
    }
    try:
        outputs = job.model.compute(job.signature.name, inputs)
    except (OSError, ValueError) as error:
        if len(calls) > 1:  # One bad request must not fail the others.
            return [answer for call in calls for answer in _answers([call])]
        if isinstance(error, OSError):
            job.model.warm_up()  # Its error ends the server.
        return [error]
    answers, start = [], 0
    for call in calls:
        rows = slice(start, start := start + len(call.costs))
        answers.append({name: column[rows] for name, column in outputs.items()})
    return answers


def joined(parts: list[Columns]) -> Columns:
    """Returns the outputs of all calls, padded to the widest."""
    columns = {}
    for name, first in parts[0].items():
        widest = np.max([part[name].shape for part in parts], axis=0)[1:]
        fill = FILL.get(first.dtype.kind, 0)
        padded = []
        for part in parts:
            missing = [(0, size) for size in widest - part[name].shape[1:]]
            padded.append(np.pad(part[name], [(0, 0), *missing], constant_values=fill))
        columns[name] = np.concatenate(padded)
    return columns


def num_bytes(columns: Columns) -> int:
    """Returns the size of inputs or outputs."""
    texts = [column for column in columns.values() if column.dtype == object]
    size = sum(column.nbytes for column in columns.values())
    return size + sum(len(text) for column in texts for text in column.flat)


def end_process(message: str, code: int) -> None:
    """Ends the process although other threads run."""
    sys.stderr.write(f"bert_tf serve: {message}\n")
    sys.stderr.flush()
    os._exit(code)
