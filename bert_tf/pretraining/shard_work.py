"""Shards to output files, in this process or spread over several."""

import collections
import contextlib
import dataclasses
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import process

from bert_tf import files
from bert_tf import progress as progress_protocol
from bert_tf.data import corpus
from bert_tf.data import tfrecord
from bert_tf.pretraining import counts as pretraining_counts
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import shard_worker
from bert_tf.tokenization import vocabulary as vocabularies

_MEGABYTE = 1_000_000
_STAGE = "create"
_SECONDS_BETWEEN_PROGRESS = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShardWork:
    """Everything that is to be done."""

    shards: Sequence[corpus.Shard]  # The corpus.
    options: pretraining_options.CreatePretrainingDataOptions  # What to make.
    vocabulary: vocabularies.Vocabulary  # The vocabulary that the options name.
    writers: Sequence[tfrecord.Writer]  # One for each output file.
    counts: pretraining_counts.Counts  # What is read and made is added to it.

    def placements(self) -> list[shard_worker.Placement]:
        """Returns where the sequences of each shard go."""
        return [
            shard_worker.Placement(
                shard_index=index,
                num_shards=len(self.shards),
                num_files=len(self.writers),
            )
            for index in range(len(self.shards))
        ]


def write_shards(work: ShardWork, progress: progress_protocol.Progress) -> float:
    """Writes the records of all shards, in the order of the shards.

    Args:
        work: what is to be done.
        progress: told how many MB of text are done.

    Returns:
        Peak memory in MB, of all processes added up.

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

    tell(0)
    num_workers = min(work.options.num_workers, len(work.shards))
    if num_workers == 1:
        _write_here(work, tell)
        peaks = []
    else:
        peaks = _write_in_processes(work, num_workers, tell)
    tell(total)
    return sum(peaks) + shard_worker.peak_memory_mb()


def _write_here(work, tell):
    sampler = shard_worker.create_sampler(work.options, work.vocabulary)
    done = 0
    for shard, place in zip(work.shards, work.placements(), strict=True):
        tell_share = shard_worker.share_of(shard, done, tell)
        first_row = 0
        index = place.shard_index
        for columns in sampler.columns(shard, index, work.counts, tell_share):
            for file, rows in place.split(columns, first_row):
                work.writers[file].write(rows)
            first_row += len(columns["input_ids"])
        done += shard.num_bytes


def _write_in_processes(work, num_workers, tell):
    """Returns the peak memory of each process."""
    # Not fork: a caller's TensorFlow has threads, which do not survive it.
    context = multiprocessing.get_context("spawn")
    shared = shard_worker.Shared(num_bytes=context.Value("q", 0), stop=context.Event())
    peaks = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_folder_for_parts(work.options.output_file[0]))
        pool = futures.ProcessPoolExecutor(
            num_workers,
            mp_context=context,
            initializer=shard_worker.start,
            initargs=(work.options, shared),
        )
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        stack.callback(shared.stop.set)
        tasks = (
            shard_worker.Task(shard=shard, folder=folder, place=place)
            for shard, place in zip(work.shards, work.placements(), strict=True)
        )
        for result in _in_order(pool, tasks, num_workers, shared, tell):
            for part in result.parts:
                work.writers[part.file].append_part(part.path, part.sizes)
                files.remove(part.path)
            work.counts.add(result.counts)
            peaks[result.process_id] = result.peak_memory_mb
    return list(peaks.values())


def _in_order(pool, tasks, num_workers, shared, tell):
    """Yields results in the order of the tasks, a few tasks ahead of the reader."""
    pending = collections.deque()
    tasks = iter(tasks)
    try:
        while True:
            for task in tasks:
                with _interrupts_held_back():  # Here the pool starts its processes.
                    pending.append(pool.submit(shard_worker.write_parts, task))
                if len(pending) > num_workers:
                    break
            if not pending:
                return
            failed = None
            while not (failed or pending[0].done()):
                done, _ = futures.wait(
                    pending, _SECONDS_BETWEEN_PROGRESS, futures.FIRST_EXCEPTION
                )
                tell(shared.num_bytes.value)
                failed = next((task for task in done if task.exception()), None)
            if failed:
                failed.result()
            yield pending.popleft().result()
    except process.BrokenProcessPool:
        raise OSError(
            "A worker process was killed; memory may have run out. Give fewer "
            "--num_workers or a smaller --shard_mb."
        ) from None


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


def _folder_for_parts(path):
    """Returns a folder, removed at the end, on the disk that the files go to."""
    folder = None
    if not files.is_remote(path):
        folder = os.path.dirname(os.path.realpath(path))
    return tempfile.TemporaryDirectory(prefix=".create_pretraining_data.", dir=folder)
