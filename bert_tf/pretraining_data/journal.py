"""What of a run is done: parts of finished shards, which a killed run leaves behind.

They lie in a folder beside the first output file. The same command, on the same text,
goes on with them; any other one starts anew.
"""

import contextlib
import dataclasses
import hashlib
import io
import json
import logging
import os
import tempfile
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import segmentation
from bert_tf.tokenization import vocabulary as vocabulary_module

_LOG = logging.getLogger(__name__)
_FINGERPRINT = "fingerprint"
# Changes whenever the same command makes other records than before.
_RECORDS_VERSION = 2
# Options that the records do not depend on, or not by their names.
_OF_NO_EFFECT = (
    "input_file",
    "num_workers",
    "output_file",
    "pipeline_options",
    "runner",
    "vocab_file",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """Records that are to be appended to an output file."""

    file: int  # Number of the output file.
    path: str  # Where the framed records are.
    sizes: np.ndarray  # int64 [R], bytes of each.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What became of a shard."""

    parts: tuple[Part, ...]  # By output file.
    counts: counts_module.Counts  # What was read and made.
    process_id: int  # Which process did it.
    peak_memory_mb: float  # The most that it has held so far; 0: an earlier run's.


class Journal:
    """The folder of a run's parts, a context manager.

    It is removed at the end. An interrupted run, or one whose disk is full, leaves it
    behind when a shard is finished.

    Args:
        output_file: the run's first output file.
        fingerprint: of all that the records depend on.

    Attributes:
        folder: where parts go; there inside the block.
        num_finished: shards that an earlier run has finished.
    """

    def __init__(self, output_file: str, fingerprint: str):
        self._fingerprint = fingerprint
        path = output_file
        self._can_stay = True
        if not files.is_remote(path):
            path = os.path.realpath(path)
            # A device, such as /dev/null, has no place beside it.
            self._can_stay = os.path.isfile(path) or not os.path.exists(path)
        folder, name = os.path.split(path)
        self.folder = os.path.join(folder, f".{name}.shards")
        self.num_finished = 0

    def __enter__(self) -> "Journal":
        if not self._can_stay:
            self.folder = tempfile.mkdtemp(prefix="create_pretraining_data.")
            return self
        path = os.path.join(self.folder, _FINGERPRINT)
        is_ours = False
        if files.exists(path):
            with files.open_file(path) as file:
                is_ours = file.read() == self._fingerprint
        if not is_ours:
            _remove(self.folder)
        files.make_folders(self.folder)
        with files.complete_or_absent(path) as file:
            file.write(self._fingerprint)
        self.num_finished = self._count()
        return self

    def __exit__(self, kind, error, traceback):
        is_worth_it = kind is not None and issubclass(kind, OSError | KeyboardInterrupt)
        if self._can_stay and is_worth_it and (num_finished := self._count()):
            _LOG.warning(
                "%d finished shards are kept in %s; the same command uses them.",
                num_finished,
                self.folder,
            )
            return
        _remove(self.folder)

    def _count(self):
        return sum(name.endswith(".npz") for name in files.list_folder(self.folder))


def finish(folder: str, shard_index: int, result: Result) -> None:
    """Notes that the parts of a shard are written.

    Raises:
        OSError: it cannot be written.
    """
    noted = io.BytesIO()  # What np.savez asks of a file, remote ones cannot do.
    np.savez(
        noted,
        counts=json.dumps(dataclasses.asdict(result.counts)),
        files=np.array([part.file for part in result.parts]),
        paths=[os.path.basename(part.path) for part in result.parts],
        **{f"sizes_{part.file}": part.sizes for part in result.parts},
    )
    with files.complete_or_absent(_path(folder, shard_index), "wb") as file:
        file.write(noted.getvalue())


def finished(folder: str, shard_index: int) -> Result | None:
    """Returns what an earlier run noted of a shard, if its parts are there whole."""
    path = _path(folder, shard_index)
    if not files.exists(path):
        return None
    with files.open_file(path, "rb") as file, np.load(file) as noted:
        parts = tuple(
            Part(
                file=int(number),
                path=os.path.join(folder, str(name)),
                sizes=noted[f"sizes_{number}"],
            )
            for number, name in zip(noted["files"], noted["paths"], strict=True)
        )
        counts = counts_module.Counts(**json.loads(str(noted["counts"])))
    for part in parts:
        size = files.size(part.path) if files.exists(part.path) else -1
        if size != part.sizes.sum():
            return None
    return Result(parts=parts, counts=counts, process_id=0, peak_memory_mb=0.0)


def fingerprint(
    options,
    vocabulary: vocabulary_module.Vocabulary,
    inputs: Sequence[str],
    shards: Sequence[data_corpus.Shard],
) -> str:
    """Returns a digest of all that the records depend on.

    Args:
        options: `CreatePretrainingDataOptions`.
        vocabulary: that the options name.
        inputs: the files that are read; what is in them counts, not their names.
        shards: what the files are cut into.

    Raises:
        OSError: a file cannot be read.
    """
    values = dataclasses.asdict(options)
    for name in _OF_NO_EFFECT:
        values.pop(name, None)
    values["num_files"] = len(options.output_file)
    values["vocabulary"] = vocabulary.fingerprint
    values["version"] = _RECORDS_VERSION
    values["shards"] = [shard.num_bytes for shard in shards]
    digest = hashlib.blake2b(json.dumps(values, sort_keys=True).encode())
    paths = list(inputs)
    if options.whole_word_segmenter not in (None, segmentation.JIEBA):
        paths.append(options.whole_word_segmenter)
    for path in paths:
        with files.open_file(path, "rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


def _remove(folder):
    """Removes a journal's folder with all that is in it."""
    if not files.exists(folder):
        return
    with contextlib.suppress(OSError):
        # The fingerprint first: without it, what is left is nobody's.
        names = files.list_folder(folder)
        for name in sorted(names, key=lambda name: name != _FINGERPRINT):
            files.remove(os.path.join(folder, name))
        if not files.is_remote(folder):
            os.rmdir(folder)


def _path(folder, shard_index):
    return os.path.join(folder, f"{shard_index}.npz")
