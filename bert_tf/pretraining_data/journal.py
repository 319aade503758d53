"""Journal of finished shards, so that a killed run can resume.

The journal is a folder beside the first output file. It contains the records of each
finished shard, called its part, and a note about them, which is written last. The same
command on the same text uses them; any other command discards them. All parts stay
until the last shard is finished, so the disk contains the records twice for a while.
"""

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator
from collections.abc import Sequence

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.data import parallel
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import vocabulary as vocabulary_module

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
