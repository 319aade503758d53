"""Shards to output files, in this process or spread over several."""

import collections
import contextlib
import dataclasses
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import process

from bert_tf import progress as progress_module
from bert_tf.data import corpus as data_corpus
from bert_tf.data import tfrecord
from bert_tf.data.parallel import execution
from bert_tf.pretraining_data import beam
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import journal as journal_module
from bert_tf.pretraining_data import one_shard
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import vocabulary as vocabulary_module

_MEGABYTE = 1_000_000
_STAGE = "create"
_SECONDS_BETWEEN_PROGRESS = 0.2
_TASKS_AHEAD = 4  # For each worker, so that none waits until this process looks.
# Packages with threads of their own, which would not survive a fork.
_THREADED = frozenset({"jax", "tensorflow", "torch"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShardWork:
    """Everything that is to be done."""

    shards: Sequence[data_corpus.Shard]  # The corpus.
    options: pretraining_data_options.CreatePretrainingDataOptions  # What to make.
    vocabulary: vocabulary_module.Vocabulary  # The vocabulary that the options name.
    writers: Sequence[tfrecord.Writer]  # One for each output file.
    counts: counts_module.Counts  # What is read and made is added to it.
    journal: journal_module.Journal | None  # None: there is one shard.

    def tasks(self) -> list[one_shard.Task]:
        """Returns what is to be done with each shard."""
        return [
            one_shard.Task(
                shard=shard,
                folder=self.journal.folder,
                place=self.placement(index),
            )
            for index, shard in enumerate(self.shards)
        ]

    def placement(self, shard_index: int) -> one_shard.Placement:
        """Returns where the sequences of a shard go."""
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
        work: what is to be done.
        progress: told how many MB of text are done.

    Returns:
        Peak memory in MB, of all processes added up; with a runner of Beam's, of this
        process, without the workers.

    Raises:
        OSError: a file cannot be read or written, or a process was killed.
        ValueError: as `VectorizedSampler.columns`.
    """
    total = sum(shard.num_bytes for shard in work.shards)
    told = None

    def tell(num_bytes):
        nonlocal told
        # Whoever draws a bar takes it for a new one when the end is told twice.
        if num_bytes != told:
            told = num_bytes
            progress(_STAGE, told / _MEGABYTE, total / _MEGABYTE, unit="MB")

    if work.options.runner != execution.LOCAL and len(work.shards) > 1:
        results = beam.do_all(
            work.tasks(), work.options, stage=_STAGE, progress=progress
        )
        for result in results:
            work.append(result)
        return one_shard.peak_memory_mb()
    num_workers = min(_num_workers(work.options, total), len(work.shards))
    peaks = []
    if len(work.shards) == 1:
        _write_one(work, tell)
    elif num_workers == 1:
        _write_here(work, tell)
    else:
        peaks = _write_in_processes(work, num_workers, tell)
    tell(total)
    return sum(peaks) + one_shard.peak_memory_mb()


def _num_workers(options, num_bytes):
    if options.num_workers is not None:
        return options.num_workers
    has_affinity = hasattr(os, "sched_getaffinity")  # Linux.
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    # Starting a process takes about as long as a megabyte does.
    return max(1, min(cores, num_bytes // _MEGABYTE))


def _write_one(work, tell):
    """Writes the only shard, without a part in between."""
    tell(0)
    sampler = one_shard.create_sampler(work.options, work.vocabulary)
    [shard], place, first_row = work.shards, work.placement(0), 0
    tell_share = one_shard.share_of(shard, 0, tell)
    for columns in sampler.columns(shard, 0, work.counts, tell_share):
        for file, rows in place.split(columns, first_row):
            work.writers[file].write(rows)
        first_row += len(columns["input_ids"])


def _write_here(work, tell):
    tell(0)
    sampler = one_shard.create_sampler(work.options, work.vocabulary)
    done = 0
    for task in work.tasks():
        result = journal_module.finished(task.folder, task.place.shard_index)
        if result is None:
            result = one_shard.parts_of(
                task,
                work.options,
                sampler,
                lambda now, before=done: tell(before + now),
            )
        work.append(result)
        done += task.shard.num_bytes
        tell(done)


def _write_in_processes(work, num_workers, tell):
    """Returns the peak memory of each process."""
    context = multiprocessing.get_context(_start_method())
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
        for result in _in_order(pool, work.tasks(), num_workers, shared, tell):
            work.append(result)
            peaks[result.process_id] = result.peak_memory_mb
    return list(peaks.values())


def _start_method():
    """Returns how to start processes: fork, the fastest by far, where that is safe."""
    has_threads = threading.active_count() > 1 or not _THREADED.isdisjoint(sys.modules)
    return "spawn" if has_threads or sys.platform != "linux" else "fork"


def _in_order(pool, tasks, num_workers, shared, tell):
    """Yields results in the order of the tasks, a few tasks ahead of the reader."""
    tasks = iter(tasks)
    try:
        ahead = itertools.islice(tasks, _TASKS_AHEAD * num_workers)
        pending = collections.deque(_started(pool, task, shared) for task in ahead)
        # Not earlier: whoever draws a bar may start a thread, and then no more forks.
        tell(0)
        while pending:
            failed = None
            while not (failed or pending[0].done()):
                futures.wait(
                    [task for task in pending if not task.done()],
                    _SECONDS_BETWEEN_PROGRESS,
                    futures.FIRST_COMPLETED,
                )
                tell(shared.num_bytes.value)
                failed = next(
                    (task for task in pending if task.done() and task.exception()), None
                )
            if failed:
                failed.result()
            yield pending.popleft().result()
            for task in itertools.islice(tasks, 1):
                pending.append(_started(pool, task, shared))
    except process.BrokenProcessPool:
        raise OSError(
            "A worker process was killed; memory may have run out. Give fewer "
            "--num_workers or a smaller --shard_mb."
        ) from None


def _started(pool, task, shared):
    """Returns the future of a task; what an earlier run has finished is done."""
    result = journal_module.finished(task.folder, task.place.shard_index)
    if result is None:
        with _interrupts_held_back():  # Here the pool starts its processes.
            return pool.submit(one_shard.write_parts, task)
    with shared.num_bytes.get_lock():
        shared.num_bytes.value += task.shard.num_bytes
    done = futures.Future()
    done.set_result(result)
    return done


@contextlib.contextmanager
def _interrupts_held_back():
    """Lets Ctrl-C reach this thread after the block, and no process started in it.

    A new process would else print a traceback before it can look away.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows.
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
