"""What one process does with a shard."""

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import threading
import uuid
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from multiprocessing import synchronize
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.data import encoding as data_encoding
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import features
from bert_tf.pretraining_data import journal as journal_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_sampling
from bert_tf.pretraining_data import vectorized_sampling
from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placement:
    """Which output files the sequences of a shard go to."""

    shard_index: int  # Number of the shard.
    num_shards: int  # Shards of the corpus.
    num_files: int  # Output files, F.

    @property
    def files(self) -> list[int]:
        """Numbers of the files."""
        if self.num_shards >= self.num_files:
            return [self.shard_index % self.num_files]
        return list(range(self.num_files))

    def split(
        self, columns: Mapping[str, np.ndarray], first_row: int
    ) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """Yields (number of a file, the rows that go there).

        Args:
            columns: some of the shard's rows; with several files they go there in
                turn.
            first_row: number of the first of them in the shard.
        """
        targets = self.files
        for turn, file in enumerate(targets):
            rows = slice((turn - first_row) % len(targets), None, len(targets))
            yield file, {name: values[rows] for name, values in columns.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared:
    """What the processes share."""

    num_bytes: Any  # multiprocessing.Value: bytes of text done by all of them.
    stop: synchronize.Event  # Set when nothing more is wanted.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """One shard to do."""

    shard: data_corpus.Shard  # The text.
    folder: str  # Where to write.
    place: Placement  # Where the sequences go in the end.


class StoppedError(Exception):
    """The main process wants nothing more."""


# Of this process: (options, vocabulary, what is shared, its sampler or None). Set by
# `start`.
_STATE: list = []


def start(
    options: pretraining_data_options.CreatePretrainingDataOptions,
    vocabulary: vocabulary_module.Vocabulary,
    shared: Shared,
) -> None:
    """Prepares a new process."""
    # The main process is interrupted too, and then says stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _STATE[:] = [options, vocabulary, shared, None]


def write_parts(task: Task) -> journal_module.Result:
    """Does a task, as `parts_of`, in a process that `start` has prepared."""
    options, vocabulary, shared, sampler = _STATE
    if sampler is None:
        sampler = _STATE[-1] = create_sampler(options, vocabulary)
    return parts_of(task, options, sampler, _adding_to(shared))


def parts_of(
    task: Task,
    options: pretraining_data_options.CreatePretrainingDataOptions,
    sampler: release_sampling.ReleaseSampler | vectorized_sampling.VectorizedSampler,
    tell: Callable[[int], None],
) -> journal_module.Result:
    """Samples a shard and writes its records, framed, to files in `task.folder`.

    Args:
        task: the shard. What is written depends on it and the options alone.
        options: of create_pretraining_data.
        sampler: of `create_sampler`.
        tell: told how many bytes of the shard are done.

    Raises:
        OSError, ValueError: as `VectorizedSampler.columns`, or a full disk.
    """
    schema = features.schema_of(options)
    counts = counts_module.Counts()
    index = task.place.shard_index
    tell_share = share_of(task.shard, 0, tell)
    first_row = 0
    with contextlib.ExitStack() as stack:
        parts = {}
        for file in task.place.files:
            part = contextlib.closing(_PartWriter(task, file, schema))
            parts[file] = stack.enter_context(part)
        for columns in sampler.columns(task.shard, index, counts, tell_share):
            for file, rows in task.place.split(columns, first_row):
                parts[file].write(rows)
            first_row += len(columns["input_ids"])
    result = journal_module.Result(
        parts=tuple(part.written() for part in parts.values()),
        counts=counts,
        process_id=os.getpid(),
        peak_memory_mb=peak_memory_mb(),
    )
    journal_module.finish(task.folder, index, result)
    return result


def create_sampler(
    options: pretraining_data_options.CreatePretrainingDataOptions,
    vocabulary: vocabulary_module.Vocabulary,
) -> release_sampling.ReleaseSampler | vectorized_sampling.VectorizedSampler:
    """Returns the `ReleaseSampler` or `VectorizedSampler` that the options name."""
    if options.sampler == "release":
        return release_sampling.ReleaseSampler(options, vocabulary)
    return vectorized_sampling.VectorizedSampler(options, vocabulary)


def share_of(
    shard: data_corpus.Shard, done: int, tell: Callable[[int], None]
) -> Callable[[float], None]:
    """Returns a function that tells bytes done for the share of a shard done."""
    return lambda share: tell(done + int(min(share, 1.0) * shard.num_bytes))


def peak_memory_mb() -> float:
    """Returns the most memory in MB that this process has held; 0 where unknown."""
    try:
        # Not getrusage alone: what a parent held counts there for its children.
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1000
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


class _PartWriter:
    """Writes framed records of one shard for one output file."""

    def __init__(self, task, file, schema):
        self._file = file
        self._schema = schema
        self._sizes = [np.zeros(0, np.int64)]
        # A runner may do a task twice at the same time: each its own file.
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
    told = 0

    def tell(num_bytes):
        nonlocal told
        if shared.stop.is_set():
            raise StoppedError
        with shared.num_bytes.get_lock():
            shared.num_bytes.value += num_bytes - told
        told = num_bytes

    return tell


def _end_with_parent():
    """Ends this process when the main one is gone, however it went."""
    multiprocessing.parent_process().join()
    os._exit(1)
