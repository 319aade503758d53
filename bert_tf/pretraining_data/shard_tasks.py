"""Samples the shards of a corpus as independent tasks, and joins their records.

A task writes the framed records of a shard to a part file of the `journal`. Tasks run
in this process, in local processes, or on a Beam runner. Meanwhile, this process
appends finished parts to the output files, in the order of the shards.
"""

import dataclasses
import functools
import io
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.data import encoding as data_encoding
from bert_tf.data import parallel
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import journal as journal_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_sampling
from bert_tf.pretraining_data import row_packing
from bert_tf.pretraining_data import vectorized_sampling
from bert_tf.tokenization import vocabulary as vocabulary_module

_MIN_PIECES = 10_000  # From which a vocabulary can be judged.
_RECORDS_AT_A_TIME = 4096  # Read from a part.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """A shard to sample."""

    shard: data_corpus.Shard
    index: int  # Of the shard.
    folder: str  # Of the journal.
    options: pretraining_data_options.CreatePretrainingDataOptions
    vocab_fingerprint: str  # Of the vocabulary that the options name.


def write(
    shards: Sequence[data_corpus.Shard],
    writers: Sequence[tfrecord.Writer],
    options: pretraining_data_options.CreatePretrainingDataOptions,
    vocabulary: vocabulary_module.Vocabulary,
    folder: str,
) -> counts_module.Counts:
    """Writes the records of all shards, in the order of the shards.

    Args:
        shards: the text.
        writers: one per output file.
        options: what to create.
        vocabulary: the vocabulary that the options name.
        folder: that of the journal.

    Returns:
        The counts of all shards.

    Raises:
        OSError: a file cannot be read or written, or a process was killed.
        ValueError: as `VectorizedSampler.columns`.
    """
    tasks = [
        Task(
            shard=shard,
            index=index,
            folder=folder,
            options=options,
            vocab_fingerprint=vocabulary.fingerprint,
        )
        for index, shard in enumerate(shards)
    ]
    counts = counts_module.Counts()
    num_appended = 0

    def append_finished() -> None:
        nonlocal num_appended
        for task in tasks[num_appended:]:
            note = journal_module.finished(folder, task.index)
            if note is None:
                return
            # With fewer shards than files, each shard's rows go to all files in turn.
            outputs = writers
            if len(shards) >= len(writers):
                outputs = [writers[task.index % len(writers)]]
            _append(journal_module.part_path(folder, task.index), note.sizes, outputs)
            counts.add(note.counts)
            if counts.pieces >= _MIN_PIECES or task is tasks[-1]:
                counts_module.check_unknown(counts, options.max_unknown_share)
            num_appended += 1

    parallel.run(
        sample,
        tasks,
        options,
        stage="create",
        num_bytes=sum(shard.num_bytes for shard in shards),
        on_progress=append_finished,
    )
    append_finished()
    if num_appended < len(tasks):
        raise OSError(
            f"--runner={options.runner}: shard {num_appended} is missing from {folder}."
            " Check that all workers share this folder."
        )
    return counts


def _append(path, sizes, writers):
    """Appends the records of a part to the output files in turn."""
    with files.open_file(path, "rb") as part:
        for first in range(0, len(sizes), _RECORDS_AT_A_TIME):
            block_sizes = sizes[first : first + _RECORDS_AT_A_TIME]
            data = part.read(sum(block_sizes))
            if len(writers) == 1:  # Cutting into records takes longer than writing.
                writers[0].append(data, block_sizes)
                continue
            block = io.BytesIO(data)
            records = [block.read(size) for size in block_sizes]
            for number, writer in enumerate(writers):
                rows = slice((number - first) % len(writers), None, len(writers))
                writer.append(b"".join(records[rows]), block_sizes[rows])


def schema_of(
    options: pretraining_data_options.CreatePretrainingDataOptions,
) -> schema_module.Schema:
    """Returns the schema of the records that the options ask for."""
    return schema_module.pretraining(
        options.max_seq_length,
        options.max_predictions_per_seq,
        options.next_sentence,
        sequences_per_row=row_packing.sequences_per_row(options.max_seq_length)
        if options.packed_rows
        else None,
    )


def sample(task: Task, on_bytes: Callable[[int], None]) -> None:
    """Samples a shard, unless it is already finished; reports the bytes that are done.

    The records depend only on the task.

    Raises:
        OSError: as `VectorizedSampler.columns`, or the disk is full.
        ValueError: as `VectorizedSampler.columns`.
    """
    if journal_module.finished(task.folder, task.index) is not None:
        on_bytes(task.shard.num_bytes)
        return
    num_done = 0

    def on_share(share: float) -> None:
        nonlocal num_done
        now = int(min(share, 1.0) * task.shard.num_bytes)
        on_bytes(now - num_done)
        num_done = now

    counts = counts_module.Counts()
    schema = schema_of(task.options)
    sizes: list[int] = []
    path = journal_module.part_path(task.folder, task.index)
    with files.complete_or_absent(path, "wb") as part:
        sampler = _sampler(task.options, task.vocab_fingerprint)
        for columns in sampler.columns(task.shard, task.index, counts, on_share):
            counts.add_columns(columns)
            data, record_sizes = data_encoding.framed_records(schema, columns)
            part.write(data)
            sizes += record_sizes.tolist()
    note = journal_module.Note(sizes=sizes, counts=counts)
    journal_module.finish(task.folder, task.index, note)
    on_share(1.0)


def create_sampler(
    options: pretraining_data_options.CreatePretrainingDataOptions,
    vocabulary: vocabulary_module.Vocabulary,
) -> Any:
    """Returns the sampler that the options name; see `VectorizedSampler.columns`."""
    if options.sampler == "release":
        return release_sampling.ReleaseSampler(options, vocabulary)
    if options.sampler == "tf_data":
        # Imports TensorFlow, which no other sampler needs.
        from bert_tf.pretraining_data import graph_sampling

        return graph_sampling.GraphSampler(options, vocabulary)
    return vectorized_sampling.VectorizedSampler(options, vocabulary)


@functools.lru_cache(maxsize=1)
def _sampler(options, vocab_fingerprint):
    """Returns this process's sampler: creating one takes longer than a small shard."""
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    if vocabulary.fingerprint != vocab_fingerprint:
        raise OSError(
            f"{options.vocab_file} is not the file that the run began with. Check that "
            "nothing changes it and that all workers read the same file."
        )
    return create_sampler(options, vocabulary)
