"""Samples the shards of a corpus as independent tasks, and joins their records.

A task writes the framed records of a shard to a part file of the journal. Tasks run in
this process, in local processes, or on a Beam runner. Meanwhile, this process appends
finished parts to the output files, in the order of the shards.

The journal is a folder beside the first output file, so that a killed run can resume.
It contains the records of each finished shard, called its part, and a note about them,
which is written last. The same command on the same text uses them; any other command
discards them. All parts stay until the last shard is finished, so the disk contains the
records twice for a while.
"""

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import logging
import os
import tempfile
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.data import encoding as data_encoding
from bert_tf.data import parallel
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_sampling
from bert_tf.pretraining_data import vectorized_sampling
from bert_tf.tokenization import vocabulary as vocabulary_module

_MIN_PIECES = 10_000  # From which a vocabulary can be judged.
_RECORDS_AT_A_TIME = 4096  # Read from a part.
_LOG = logging.getLogger(__name__)
# Increase it whenever a new version of the code produces different records.
_RECORDS_VERSION = 2
# Options whose values do not affect the records. Of files, only the contents do.
_OPTIONS_WITHOUT_EFFECT = (
    "input_file",
    "max_unknown_share",
    "num_workers",
    "output_file",
    "pipeline_options",
    "runner",
    "vocab_file",
)


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
            note = finished(folder, task.index)
            if note is None:
                return
            # With fewer shards than files, each shard's rows go to all files in turn.
            outputs = writers
            if len(shards) >= len(writers):
                outputs = [writers[task.index % len(writers)]]
            _append(part_path(folder, task.index), note.sizes, outputs)
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
        sequences_per_row=vectorized_sampling.sequences_per_row(options.max_seq_length)
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
    if finished(task.folder, task.index) is not None:
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
    path = part_path(task.folder, task.index)
    with files.complete_or_absent(path, "wb") as part:
        sampler = _sampler(task.options, task.vocab_fingerprint)
        for columns in sampler.columns(task.shard, task.index, counts, on_share):
            counts.add_columns(columns)
            data, record_sizes = data_encoding.framed_records(schema, columns)
            part.write(data)
            sizes += record_sizes.tolist()
    note = Note(sizes=sizes, counts=counts)
    finish(task.folder, task.index, note)
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Note:
    """A finished shard."""

    sizes: list[int]  # Bytes of each record with header and footer.
    counts: counts_module.Counts


@contextlib.contextmanager
def folder_beside(output_file: str, fingerprint: str) -> Iterator[str]:
    """Yields the journal's folder, which keeps what the same command finished.

    The folder is removed at the end of the block, unless the run is interrupted or
    fails with an OSError, such as a full disk, after at least one shard.

    Args:
        output_file: the first output file.
        fingerprint: from `fingerprint`.

    Raises:
        OSError: the folder cannot be created.
    """
    if not files.is_remote(output_file):
        output_file = os.path.realpath(output_file)
        if os.path.exists(output_file) and not os.path.isfile(output_file):
            # A device such as /dev/null has no folder for a journal beside it.
            prefix = "create_pretraining_data."
            with tempfile.TemporaryDirectory(prefix=prefix) as temporary:
                yield temporary
            return
    parent, name = os.path.split(output_file)
    folder = os.path.join(parent, f".{name}.shards")
    parallel.start_work(fingerprint, folder)
    is_kept = False
    try:
        yield folder
    except (OSError, KeyboardInterrupt):
        if count := num_finished(folder):
            _LOG.warning(
                "Keeping %d finished shards in %s. The same command resumes the run.",
                count,
                folder,
            )
            is_kept = True
        raise
    finally:
        if not is_kept:
            with contextlib.suppress(OSError):
                parallel.remove_work(folder)


def num_finished(folder: str) -> int:
    """Returns the number of finished shards."""
    return sum(name.endswith(".json") for name in files.list_folder(folder))


def part_path(folder: str, shard_index: int) -> str:
    """Returns the path of a shard's records."""
    return os.path.join(folder, f"{shard_index:06d}.part")


def note_path(folder: str, shard_index: int) -> str:
    """Returns the path of the note about a shard."""
    return os.path.join(folder, f"{shard_index:06d}.json")


def finish(folder: str, shard_index: int, note: Note) -> None:
    """Notes that all records of a shard are written.

    Raises:
        OSError: the note cannot be written.
    """
    with files.complete_or_absent(note_path(folder, shard_index)) as file:
        json.dump({**vars(note), "counts": vars(note.counts)}, file)


def finished(folder: str, shard_index: int) -> Note | None:
    """Returns the note about a shard; None if it or the part is missing or damaged."""
    path = note_path(folder, shard_index)
    if not files.exists(path):
        return None
    try:
        values = files.read_json(path)
        values["counts"] = counts_module.Counts(**values["counts"])
        note = Note(**values)
        num_bytes = sum(note.sizes)
    except (ValueError, KeyError, TypeError):
        _LOG.warning("%s is damaged; the shard is created again.", path)
        return None
    part = part_path(folder, shard_index)
    return note if files.exists(part) and files.size(part) == num_bytes else None


def fingerprint(
    options: pretraining_data_options.CreatePretrainingDataOptions,
    vocabulary: vocabulary_module.Vocabulary,
    inputs: Sequence[str],
    shards: Sequence[data_corpus.Shard],
) -> str:
    """Returns a digest of everything that the records depend on.

    Args:
        options: what to create.
        vocabulary: the vocabulary that the options name.
        inputs: the text files; their contents count, not their names.
        shards: the shards that the files are cut into.

    Raises:
        OSError: a file cannot be read.
    """
    values = dataclasses.asdict(options)
    for name in _OPTIONS_WITHOUT_EFFECT:
        values.pop(name, None)
    values["vocabulary"] = vocabulary.fingerprint
    values["version"] = _RECORDS_VERSION
    values["shards"] = [shard.num_bytes for shard in shards]
    digest = hashlib.blake2b(json.dumps(values, sort_keys=True).encode())
    for path in inputs:
        with files.open_file(path, "rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()
