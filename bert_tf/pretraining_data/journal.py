"""Journal of finished shards, so that a killed run can resume.

The journal is a folder beside the first output file. It contains the part files of each
finished shard and a note about them, which is written last. The same command on the
same text uses them; any other command discards them. All parts stay until the last
shard is finished, so the disk contains the records twice for a while.
"""

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import vocabulary as vocabulary_module

_LOG = logging.getLogger(__name__)
_FINGERPRINT = "fingerprint"
# What this tool writes into the folder: the fingerprint, notes and parts.
_OWN = re.compile(rf"{_FINGERPRINT}|\d+\.json|\d+-\d+\.part")
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

    # For each output file: bytes of each record with header and footer.
    sizes: Mapping[int, list[int]]
    counts: counts_module.Counts
    process_id: int  # The process that sampled it.
    peak_memory_mb: float  # Of that process so far.


class Journal:
    """The journal's folder, as a context manager.

    The folder is removed at the end of the block, unless the run is interrupted or
    fails with an OSError, such as a full disk, after at least one shard.

    Attributes:
        folder: the folder for part files; it exists inside the block.
        num_finished: number of shards that an earlier run has finished.
    """

    def __init__(self, output_file: str, fingerprint: str):
        self._fingerprint = fingerprint
        self._can_be_kept = True
        if not files.is_remote(output_file):
            output_file = path = os.path.realpath(output_file)
            # A device such as /dev/null has no folder for a journal beside it.
            self._can_be_kept = os.path.isfile(path) or not os.path.exists(path)
        folder, name = os.path.split(output_file)
        self.folder = os.path.join(folder, f".{name}.shards")
        self.num_finished = 0

    def __enter__(self) -> "Journal":
        if not self._can_be_kept:
            self.folder = tempfile.mkdtemp(prefix="create_pretraining_data.")
            return self
        path = os.path.join(self.folder, _FINGERPRINT)
        is_same = False
        if files.exists(path):
            with files.open_file(path) as file:
                is_same = file.read() == self._fingerprint
        if not is_same:
            _remove(self.folder)
        files.make_folders(self.folder)
        with files.complete_or_absent(path) as file:
            file.write(self._fingerprint)
        self.num_finished = self._count()
        return self

    def __exit__(self, kind, error, traceback) -> None:
        can_resume = kind is not None and issubclass(kind, OSError | KeyboardInterrupt)
        if self._can_be_kept and can_resume and (num_finished := self._count()):
            _LOG.warning(
                "Keeping %d finished shards in %s. The same command resumes the run.",
                num_finished,
                self.folder,
            )
            return
        _remove(self.folder)

    def _count(self):
        return sum(name.endswith(".json") for name in files.list_folder(self.folder))


def part_path(folder: str, shard_index: int, file: int) -> str:
    """Returns the path of a shard's records for one output file."""
    return os.path.join(folder, f"{shard_index}-{file}.part")


def note_path(folder: str, shard_index: int) -> str:
    """Returns the path of the note about a shard."""
    return os.path.join(folder, f"{shard_index}.json")


def finish(folder: str, shard_index: int, note: Note) -> None:
    """Notes that all parts of a shard are written.

    Raises:
        OSError: the note cannot be written.
    """
    with files.complete_or_absent(note_path(folder, shard_index)) as file:
        json.dump({**vars(note), "counts": vars(note.counts)}, file)


def finished(folder: str, shard_index: int) -> Note | None:
    """Returns the note about a shard, or None if it or a part is missing or damaged."""
    path = note_path(folder, shard_index)
    if not files.exists(path):
        return None
    try:
        values = files.read_json(path)
        values["counts"] = counts_module.Counts(**values["counts"])
        values["sizes"] = {int(file): sizes for file, sizes in values["sizes"].items()}
        note = Note(**values)
        num_bytes = {file: sum(sizes) for file, sizes in note.sizes.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        _LOG.warning("%s is damaged; the shard is created again.", path)
        return None
    for file, size in num_bytes.items():
        part = part_path(folder, shard_index, file)
        if not files.exists(part) or files.size(part) != size:
            return None
    return note


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
    values["num_files"] = len(options.output_file)
    values["vocabulary"] = vocabulary.fingerprint
    values["version"] = _RECORDS_VERSION
    values["shards"] = [shard.num_bytes for shard in shards]
    digest = hashlib.blake2b(json.dumps(values, sort_keys=True).encode())
    for path in inputs:
        with files.open_file(path, "rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


def _remove(folder):
    """Removes a journal's folder with the files that this tool wrote into it."""
    if not files.exists(folder):
        return
    with contextlib.suppress(OSError):
        # The fingerprint first: a folder without it is never used again.
        names = files.list_folder(folder)
        for name in sorted(names, key=lambda name: name != _FINGERPRINT):
            if _OWN.fullmatch(files.final_name(name)):
                files.remove(os.path.join(folder, name))
        if not files.is_remote(folder):
            os.rmdir(folder)
