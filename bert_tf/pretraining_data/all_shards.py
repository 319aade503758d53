"""Samples all shards and appends their records to the output files, in order.

A single shard goes straight into the output files. Several shards go through part
files (`one_shard`) and a `journal`, in this process, in local processes, or on a Beam
runner (`beam_shards`). The output is the same in each case.
"""

import collections
import contextlib
import dataclasses
import itertools
import multiprocessing
import sys
import threading
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import process
from typing import Any

from bert_tf import cores
from bert_tf import progress as progress_module
from bert_tf.data import corpus as data_corpus
from bert_tf.data import tfrecord
from bert_tf.data.parallel import execution
from bert_tf.data.parallel import worker_processes
from bert_tf.pretraining_data import beam_shards
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import journal as journal_module
from bert_tf.pretraining_data import one_shard
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import vocabulary as vocabulary_module

_MEGABYTE = 1_000_000
_STAGE = "create"
_SECONDS_BETWEEN_PROGRESS = 0.2
_TASKS_AHEAD = 4  # Per worker, so that none is idle until this process checks again.
# Packages that start threads, which would not survive a fork.
_THREADED = frozenset({"jax", "tensorflow", "torch"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShardWork:
    """The shards to sample and everything needed to write their records."""

    shards: Sequence[data_corpus.Shard]
    options: pretraining_data_options.CreatePretrainingDataOptions
    vocabulary: vocabulary_module.Vocabulary
    writers: Sequence[tfrecord.Writer]  # One per output file.
    counts: counts_module.Counts  # The counts of all shards are added to it.
    journal_folder: str | None  # None if there is only one shard.

    def tasks(self) -> list[one_shard.Task]:
        """Returns one task per shard; needs `journal_folder`."""
        if self.journal_folder is None:
            raise ValueError("A corpus of one shard has no tasks.")
        return [
            one_shard.Task(
                shard=shard, folder=self.journal_folder, place=self.placement(index)
            )
            for index, shard in enumerate(self.shards)
        ]

    def placement(self, shard_index: int) -> one_shard.Placement:
        """Returns the output files that the sequences of a shard go to."""
        return one_shard.Placement(
            shard_index=shard_index,
            num_shards=len(self.shards),
            num_files=len(self.writers),
        )

    def append(self, result: journal_module.Result) -> None:
        """Appends a shard's records to the output files."""
        for part in result.parts:
            self.writers[part.file].append_part(part.path, part.sizes)
        self.counts.add(result.counts)


def write_shards(work: ShardWork, progress: progress_module.Progress) -> float:
    """Writes the records of all shards, in the order of the shards.

    Args:
        work: the shards, and where their records go.
        progress: called with the megabytes of text finished.

    Returns:
        The peak memory of all local processes together, in MB. It does not include the
        workers of a Beam runner.

    Raises:
        OSError: a file cannot be read or written, or a process was killed.
        ValueError: as `VectorizedSampler.columns`.
    """
    total = sum(shard.num_bytes for shard in work.shards)
    reported = None

    def on_bytes(num_bytes):
        nonlocal reported
        # A progress bar restarts if its end is reported twice.
        if num_bytes != reported:
            reported = num_bytes
            progress(_STAGE, num_bytes / _MEGABYTE, total / _MEGABYTE, unit="MB")

    if work.options.runner != execution.LOCAL and len(work.shards) > 1:
        results = beam_shards.sample_all(
            work.tasks(), work.options, stage=_STAGE, progress=progress
        )
        for result in results:
            work.append(result)
        return worker_processes.peak_memory_mb()
    num_workers = min(_num_workers(work.options, total), len(work.shards))
    peaks: list[float] = []
    if len(work.shards) == 1:
        _write_one(work, on_bytes)
    elif num_workers == 1:
        _write_here(work, on_bytes)
    else:
        peaks = _write_in_processes(work, num_workers, on_bytes)
    on_bytes(total)
    return sum(peaks) + worker_processes.peak_memory_mb()


def _num_workers(options, num_bytes):
    if options.num_workers is not None:
        return options.num_workers
    # Starting a process takes about as long as sampling one megabyte.
    return max(1, min(cores.num_available(), num_bytes // _MEGABYTE))


def _write_one(work, on_bytes):
    """Writes the only shard, without part files."""
    on_bytes(0)
    sampler = one_shard.create_sampler(work.options, work.vocabulary)
    [shard], place, first_row = work.shards, work.placement(0), 0
    on_share = one_shard.share_to_bytes(shard, on_bytes)
    for columns in sampler.columns(shard, 0, work.counts, on_share):
        for file, rows in place.split(columns, first_row):
            work.writers[file].write(rows)
        first_row += len(columns["input_ids"])


def _write_here(work, on_bytes):
    """Writes several shards in this process."""
    on_bytes(0)
    sampler = one_shard.create_sampler(work.options, work.vocabulary)
    done = 0
    for task in work.tasks():
        result = journal_module.finished(task.folder, task.place.shard_index)
        if result is None:

            def report(now: int, before: int = done) -> None:
                on_bytes(before + now)

            result = one_shard.sample(task, work.options, sampler, report)
        work.append(result)
        done += task.shard.num_bytes
        on_bytes(done)


def _write_in_processes(work: ShardWork, num_workers: int, on_bytes) -> list[float]:
    """Writes several shards in local processes; returns each one's peak memory."""
    context: Any = multiprocessing.get_context(_start_method())
    shared = one_shard.Shared(num_bytes=context.Value("q", 0), stop=context.Event())
    peaks = {}
    with contextlib.ExitStack() as stack:
        pool = futures.ProcessPoolExecutor(
            num_workers,
            mp_context=context,
            initializer=one_shard.start,
            initargs=(work.options, work.vocabulary, shared),
        )
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        stack.callback(shared.stop.set)
        for result in _in_order(pool, work.tasks(), num_workers, shared, on_bytes):
            work.append(result)
            peaks[result.process_id] = result.peak_memory_mb
    return list(peaks.values())


def _start_method():
    """Returns "fork" where it is safe; it saves a quarter of a second per worker."""
    has_threads = threading.active_count() > 1 or not _THREADED.isdisjoint(sys.modules)
    return "spawn" if has_threads or sys.platform != "linux" else "fork"


def _in_order(
    pool: futures.ProcessPoolExecutor,
    all_tasks: list[one_shard.Task],
    num_workers: int,
    shared: one_shard.Shared,
    on_bytes: Callable[[int], None],
) -> Iterator[journal_module.Result]:
    """Yields results in the order of the tasks.

    Only a few tasks per worker are submitted ahead, so that a slow shard does not make
    the finished parts of all later shards pile up on the disk.
    """
    tasks = iter(all_tasks)
    try:
        ahead = itertools.islice(tasks, _TASKS_AHEAD * num_workers)
        pending = collections.deque(_submit(pool, task, shared) for task in ahead)
        # Not earlier: a progress bar may start a thread, after which forking is unsafe.
        on_bytes(0)
        while pending:
            failed = None
            while not (failed or pending[0].done()):
                futures.wait(
                    [task for task in pending if not task.done()],
                    _SECONDS_BETWEEN_PROGRESS,
                    futures.FIRST_COMPLETED,
                )
                on_bytes(shared.num_bytes.value)
                failed = next(
                    (task for task in pending if task.done() and task.exception()), None
                )
            if failed:
                failed.result()
            yield pending.popleft().result()
            for task in itertools.islice(tasks, 1):
                pending.append(_submit(pool, task, shared))
    except process.BrokenProcessPool:
        raise OSError(
            "A worker process was killed, possibly because memory ran out. Reduce "
            "--num_workers or --shard_mb."
        ) from None


def _submit(
    pool: futures.ProcessPoolExecutor, task: one_shard.Task, shared: one_shard.Shared
) -> futures.Future[journal_module.Result]:
    """Returns the future of a task, complete if an earlier run has finished it."""
    result = journal_module.finished(task.folder, task.place.shard_index)
    if result is None:
        # The pool starts its processes here.
        with worker_processes.interrupts_held_back():
            return pool.submit(one_shard.sample_in_worker, task)
    with shared.num_bytes.get_lock():
        shared.num_bytes.value += task.shard.num_bytes
    done: futures.Future[journal_module.Result] = futures.Future()
    done.set_result(result)
    return done
