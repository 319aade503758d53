"""Shards to output files, in this process or spread over several."""

import collections
import contextlib
import multiprocessing
import os
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


def write_shards(
    shards: Sequence[corpus.Shard],
    options: pretraining_options.CreatePretrainingDataOptions,
    vocabulary: vocabularies.Vocabulary,
    writers: Sequence[tfrecord.Writer],
    *,
    counts: pretraining_counts.Counts,
    progress: progress_protocol.Progress,
) -> float:
    """Writes the records of all shards, in the order of the shards.

    Args:
        shards: the corpus.
        options: of create_pretraining_data.
        vocabulary: the vocabulary that the options name.
        writers: one for each output file.
        counts: what is read and made is added to it.
        progress: told how many MB of text are done.

    Returns:
        Peak memory in MB, of all processes added up.

    Raises:
        OSError: a file cannot be read or written, or a process was killed.
        ValueError: as `VectorizedSampler.columns`.
    """
    total = sum(shard.num_bytes for shard in shards)

    def tell(num_bytes):
        done = min(num_bytes, total) / _MEGABYTE
        progress(_STAGE, done, total / _MEGABYTE, unit="MB")

    tell(0)
    num_workers = min(options.num_workers, len(shards))
    write = _write_here if num_workers == 1 else _write_in_processes
    peak = write(shards, options, vocabulary, writers, counts, tell)
    tell(total)
    return peak + shard_worker.peak_memory_mb()


def _write_here(shards, options, vocabulary, writers, counts, tell):
    sampler = shard_worker.create_sampler(options, vocabulary)
    done = 0
    for index, shard in enumerate(shards):
        tell_share = shard_worker.share_of(shard, done, tell)
        place = shard_worker.Placement(
            shard_index=index, num_shards=len(shards), num_files=len(writers)
        )
        first_row = 0
        for columns in sampler.columns(shard, index, counts, tell_share):
            for file, rows in place.split(columns, first_row):
                writers[file].write(rows)
            first_row += len(columns["input_ids"])
        done += shard.num_bytes
    return 0.0


def _write_in_processes(shards, options, vocabulary, writers, counts, tell):
    del vocabulary  # Each process loads it.
    # Not fork: a caller's TensorFlow has threads, which do not survive it.
    context = multiprocessing.get_context("spawn")
    num_workers = min(options.num_workers, len(shards))
    shared = shard_worker.Shared(num_bytes=context.Value("q", 0), stop=context.Event())
    peaks = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_folder_for_parts(options.output_file[0]))
        pool = futures.ProcessPoolExecutor(
            num_workers,
            mp_context=context,
            initializer=shard_worker.start,
            initargs=(options, shared),
        )
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        stack.callback(shared.stop.set)
        tasks = (
            shard_worker.Task(
                shard=shard,
                folder=folder,
                place=shard_worker.Placement(
                    shard_index=index, num_shards=len(shards), num_files=len(writers)
                ),
            )
            for index, shard in enumerate(shards)
        )
        for result in _in_order(pool, tasks, num_workers, shared, tell):
            for part in result.parts:
                writers[part.file].append_part(part.path, part.sizes)
                files.remove(part.path)
            counts.add(result.counts)
            peaks[result.process_id] = result.peak_memory_mb
    return sum(peaks.values())


def _in_order(pool, tasks, num_workers, shared, tell):
    """Yields results in the order of the tasks, a few tasks ahead of the reader."""
    pending = collections.deque()
    tasks = iter(tasks)
    try:
        while True:
            for task in tasks:
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


def _folder_for_parts(path):
    """Returns a folder, removed at the end, on the disk that the files go to."""
    folder = None
    if not files.is_remote(path):
        folder = os.path.dirname(os.path.realpath(path))
    return tempfile.TemporaryDirectory(prefix=".create_pretraining_data.", dir=folder)
