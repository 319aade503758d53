"""Samples one shard and writes its records to part files; runs in every worker.

Part files hold framed records that `all_shards` appends to the output files. The
journal gets a note once all parts of the shard are complete.
"""

import contextlib
import dataclasses
import os
import uuid
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from multiprocessing import synchronize
from typing import Any
from typing import Protocol

import numpy as np

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.data import encoding as data_encoding
from bert_tf.data.parallel import worker_processes
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import features
from bert_tf.pretraining_data import journal as journal_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_sampling
from bert_tf.pretraining_data import vectorized_sampling
from bert_tf.tokenization import vocabulary as vocabulary_module


class Sampler(Protocol):
    """Creates the records of shards."""

    def columns(
        self,
        shard: data_corpus.Shard,
        shard_index: int,
        counts: counts_module.Counts,
        on_progress: Callable[[float], None],
    ) -> Iterator[dict[str, np.ndarray]]:
        """See `VectorizedSampler.columns`."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placement:
    """The output files that the sequences of a shard go to."""

    shard_index: int
    num_shards: int
    num_files: int  # Output files, F.

    @property
    def files(self) -> list[int]:
        """Indices of the files: all of them if there are fewer shards than files."""
        if self.num_shards >= self.num_files:
            return [self.shard_index % self.num_files]
        return list(range(self.num_files))

    def split(
        self, columns: Mapping[str, np.ndarray], first_row: int
    ) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """Yields (index of a file, the rows for it). Several files take rows in turn.

        Args:
            columns: a block of the shard's rows.
            first_row: index of the first of these rows within the shard.
        """
        targets = self.files
        for turn, file in enumerate(targets):
            rows = slice((turn - first_row) % len(targets), None, len(targets))
            yield file, {name: values[rows] for name, values in columns.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared:
    """State that all local processes share."""

    num_bytes: Any  # multiprocessing.Value: bytes of text finished by all of them.
    stop: synchronize.Event  # Set by the main process to end the workers early.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """One shard to sample."""

    shard: data_corpus.Shard
    folder: str  # Where the part files and the note go.
    place: Placement


class StoppedError(Exception):
    """The main process has asked the workers to stop."""


# In a worker process: [options, vocabulary, shared, sampler or None], set by `start`.
_STATE: list = []


def start(
    options: pretraining_data_options.CreatePretrainingDataOptions,
    vocabulary: vocabulary_module.Vocabulary,
    shared: Shared,
) -> None:
    """Prepares a new worker process."""
    worker_processes.follow_parent()
    _STATE[:] = [options, vocabulary, shared, None]


def sample_in_worker(task: Task) -> journal_module.Result:
    """Calls `sample` in a process that `start` has prepared."""
    options, vocabulary, shared, sampler = _STATE
    if sampler is None:
        sampler = _STATE[-1] = create_sampler(options, vocabulary)
    return sample(task, options, sampler, _adding_to(shared))


def sample(
    task: Task,
    options: pretraining_data_options.CreatePretrainingDataOptions,
    sampler: Sampler,
    on_bytes: Callable[[int], None],
) -> journal_module.Result:
    """Samples a shard and writes its framed records to files in `task.folder`.

    Args:
        task: the shard. The records depend only on it and on the options.
        options: what to create.
        sampler: from `create_sampler`.
        on_bytes: called with the number of bytes of the shard finished so far.

    Raises:
        OSError: as `VectorizedSampler.columns`, or the disk is full.
        ValueError: as `VectorizedSampler.columns`.
    """
    schema = features.schema_of(options)
    counts = counts_module.Counts()
    index = task.place.shard_index
    on_share = share_to_bytes(task.shard, on_bytes)
    first_row = 0
    with contextlib.ExitStack() as stack:
        parts = {}
        for file in task.place.files:
            part = contextlib.closing(_PartWriter(task, file, schema))
            parts[file] = stack.enter_context(part)
        for columns in sampler.columns(task.shard, index, counts, on_share):
            for file, rows in task.place.split(columns, first_row):
                parts[file].write(rows)
            first_row += len(columns["input_ids"])
    result = journal_module.Result(
        parts=tuple(part.written() for part in parts.values()),
        counts=counts,
        process_id=os.getpid(),
        peak_memory_mb=worker_processes.peak_memory_mb(),
    )
    journal_module.finish(task.folder, index, result)
    return result


def create_sampler(
    options: pretraining_data_options.CreatePretrainingDataOptions,
    vocabulary: vocabulary_module.Vocabulary,
) -> Sampler:
    """Returns the sampler that the options name."""
    if options.sampler == "release":
        return release_sampling.ReleaseSampler(options, vocabulary)
    if options.sampler == "tf_data":
        # Imports TensorFlow, which no other sampler needs.
        from bert_tf.pretraining_data import graph_sampling

        return graph_sampling.GraphSampler(options, vocabulary)
    return vectorized_sampling.VectorizedSampler(options, vocabulary)


def share_to_bytes(
    shard: data_corpus.Shard, on_bytes: Callable[[int], None]
) -> Callable[[float], None]:
    """Returns a progress callback that turns the finished share into bytes."""
    return lambda share: on_bytes(int(min(share, 1.0) * shard.num_bytes))


class _PartWriter:
    """Writes framed records of one shard for one output file."""

    def __init__(self, task, file, schema):
        self._file = file
        self._schema = schema
        self._sizes = [np.zeros(0, np.int64)]
        # A Beam runner may run a task twice at the same time, so names are unique.
        name = f"{task.place.shard_index}-{file}-{uuid.uuid4().hex}.part"
        self._path = os.path.join(task.folder, name)
        self._output = files.open_file(self._path, "wb")

    def write(self, columns):
        data, sizes = data_encoding.framed_records(self._schema, columns)
        self._output.write(data)
        self._sizes.append(sizes)

    def close(self):
        self._output.close()

    def written(self):
        sizes = np.concatenate(self._sizes)
        return journal_module.Part(file=self._file, path=self._path, sizes=sizes)


def _adding_to(shared):
    """Returns an `on_bytes` that adds a task's progress to that of all workers."""
    reported = 0

    def on_bytes(num_bytes):
        nonlocal reported
        if shared.stop.is_set():
            raise StoppedError
        with shared.num_bytes.get_lock():
            shared.num_bytes.value += num_bytes - reported
        reported = num_bytes

    return on_bytes
