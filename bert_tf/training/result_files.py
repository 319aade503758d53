"""Names of result files, which identify the data set of the results.

A run has one development set and one test set of its own: those of the command that
trained it or, if that command names none, the first ones that are evaluated or
predicted. Their results are in eval_results.txt, predictions.jsonl and so on. Files
with results on any other data set contain its name, such as eval_results-ax.txt.
Therefore an evaluation only replaces earlier results on the same data.

data_sets.json records the data set of each file.
"""

import dataclasses
import functools
import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf import locks

logger = logging.getLogger(__name__)

RECORD_FILE = "data_sets.json"
_RUN_FILE = "run.json"
_BYTES_PER_READ = 1 << 20
_DIGITS = 8  # Of a checksum in a file name.
# Recorded flags; see `json_values.unexpected`.
FLAGS_SHAPE = {str: (str | int | float | bool | None, [str | int | float | bool])}
_ENTRY_SHAPE = {"name": str, "checksum": str | None}
_RUN_SHAPE = {
    "flags?": FLAGS_SHAPE,
    "training_data?": (
        None,
        {
            **_ENTRY_SHAPE,
            "earlier_stages?": [_ENTRY_SHAPE],
            "order?": str,
            "remote_files?": [str],
        },
    ),
    "earlier?": [{"until_step": int, "flags": FLAGS_SHAPE}],
    "finished_step?": int,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set to evaluate or to predict, identified by its name and content."""

    name: str  # Such as "mnli", or the name of a file without its extension.
    paths: tuple[str, ...] = ()  # Its files. Empty: the name alone identifies it.
    # Large files are identified by their names and sizes instead of their contents.
    by_size: bool = False
    # Of training data: what earlier stages of the training used. None: not recorded.
    earlier_stages: tuple["DataSet", ...] | None = None
    # Of training data: the order that remote files are read in. None: as local files.
    order: str | None = None
    # Of training data: name, size and time of each remote file.
    remote_files: tuple[str, ...] = ()
    _checksum_of: dict[str, str] = dataclasses.field(
        default_factory=dict, repr=False, compare=False
    )

    def sha256(self, path: str) -> str:
        """Returns the SHA-256 of one of the files, as it was at the first call.

        Raises:
            OSError: the file cannot be read.
        """
        if path not in self._checksum_of:
            self._checksum_of[path] = _sha256_of(path)
        return self._checksum_of[path]

    @functools.cached_property
    def checksum(self) -> str | None:
        """SHA-256 of the file, or of the checksums of several; None without files.

        Raises:
            OSError: a file cannot be read.
        """
        if not self.paths:
            return None
        if self.by_size:
            sizes = files.map_paths(files.size, self.paths)
            names = map(os.path.basename, self.paths)
            found = [f"{name} {size}" for name, size in zip(names, sizes, strict=True)]
        else:
            found = [self.sha256(path) for path in self.paths]
        if len(found) == 1 and not self.by_size:
            return found[0]
        return hashlib.sha256("\n".join(found).encode("utf-8")).hexdigest()


def file_data_set(path: str, *more_paths: str) -> DataSet:
    """Returns the data set in a file, named after it.

    Args:
        path: of the file.
        *more_paths: other files that the scores depend on, such as a corpus.
    """
    return DataSet(name=stem(path), paths=(path, *more_paths))


def folder_data_set(folder: str, *paths: str) -> DataSet:
    """Returns a data set with files of fixed names, named after its folder."""
    return DataSet(name=os.path.basename(os.path.abspath(folder)), paths=paths)


def stem(path: str) -> str:
    """Returns the name of a file without its folder and extension."""
    return os.path.splitext(os.path.basename(path))[0]


def suffix_of(run_dir: str, file_name: str, data_set: DataSet) -> str:
    """Returns the suffix for the names of files with results on a data set.

    Args:
        run_dir: folder of the run.
        file_name: the main file of the results, such as "predictions.jsonl". Files
            that belong to it get the same suffix; see `with_suffix`.
        data_set: the data set of the results.

    Returns:
        "" for the run's own data. Otherwise "-NAME", or "-NAME-CHECKSUM" if another
        data set has the same name.

    Raises:
        OSError: a file cannot be read.
        ValueError: data_sets.json is damaged.
    """
    return _suffix_in(_read(run_dir), run_dir, file_name, data_set)


def record_data_set(run_dir: str, file_name: str, data_set: DataSet) -> str:
    """Records the data set of result files; returns the suffix of their names.

    The arguments and the suffix are those of `suffix_of`.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: data_sets.json is damaged.
    """
    now = entry(data_set)  # Before the lock, because the files may be large.
    with _locked(run_dir):
        record = _read(run_dir)
        suffix = _suffix_in(record, run_dir, file_name, data_set)
        _write(run_dir, record, {with_suffix(file_name, suffix): now})
    return suffix


def _suffix_in(record, run_dir, file_name, data_set):
    own = _own_of(run_dir, file_name, record, data_set)
    if _is_same(own, data_set):
        return ""
    suffix = "-" + re.sub(r"[^\w.+-]+", "_", data_set.name).strip("_")
    is_taken = own.get("name") == data_set.name
    known = record.get(with_suffix(file_name, suffix))
    if is_taken or (known and not _is_same(known, data_set)):
        suffix += "-" + _short_checksum(data_set)
    return suffix


def with_suffix(file_name: str, suffix: str) -> str:
    """Returns a file name with a suffix before its extension."""
    root, extension = os.path.splitext(file_name)
    return f"{root}{suffix}{extension}"


def claim(run_dir: str, data_sets: Mapping[str, DataSet], *, is_new: bool) -> None:
    """Records the data sets of the command that trains a run as the run's own.

    Args:
        run_dir: folder of the run.
        data_sets: by main result file. Their files are not read, and need not exist.
        is_new: whether the training starts. Otherwise recorded data sets remain.

    Raises:
        OSError: data_sets.json cannot be read or written.
        ValueError: data_sets.json is damaged.
    """
    with _locked(run_dir):
        record = _read(run_dir)
        claimed = {
            name: {"name": data_set.name, "checksum": None}
            for name, data_set in data_sets.items()
            if is_new or name not in record
        }
        _write(run_dir, record, claimed)


def own_name(run_dir: str, file_name: str) -> str | None:
    """Returns the name of the data set of a result file; None if it is not recorded.

    Raises:
        OSError: data_sets.json cannot be read.
        ValueError: data_sets.json is damaged.
    """
    return (own_entry(run_dir, file_name) or {}).get("name")


def own_entry(run_dir: str, file_name: str) -> dict[str, str | None] | None:
    """Returns the `entry` of the data set of a result file; None if not recorded.

    Raises:
        OSError: data_sets.json cannot be read.
        ValueError: data_sets.json is damaged.
    """
    return _read(run_dir).get(file_name)


def recorded_files(run_dir: str) -> list[str]:
    """Returns the names of the main result files whose data sets are recorded.

    Raises:
        OSError: data_sets.json cannot be read.
        ValueError: data_sets.json is damaged.
    """
    return list(_read(run_dir))


def refuse_other(run_dir: str, file_name: str, data_set: DataSet) -> None:
    """Raises a ValueError: evaluations during training would use other data."""
    own = own_name(run_dir, file_name) or "other data"
    raise ValueError(
        f"{run_dir} was evaluated on {own}, so evaluations during training cannot use "
        f"{data_set.name}; use the same data, or another --output_dir."
    )


def _own_of(run_dir, file_name, record, data_set):
    """Returns the entry of the run's own data; `data_set` itself if there is none."""
    if file_name in record:
        return record[file_name]
    if not files.exists(os.path.join(run_dir, file_name)):
        return entry(data_set)
    # Runs of earlier versions have no record. Their flags may name the data.
    flags = read_run(run_dir).get("flags", {})
    texts = [value for value in flags.values() if isinstance(value, str)]
    names = {text.lower() for text in texts} | {stem(text) for text in texts}
    names |= {os.path.basename(os.path.abspath(text)) for text in texts}
    if data_set.name in names:
        return entry(data_set)
    return {"name": None, "checksum": None}


def _is_same(entry, data_set):
    if entry["name"] != data_set.name:
        return False
    checksums = {entry["checksum"], data_set.checksum}
    return None in checksums or len(checksums) == 1


def entry(data_set: DataSet) -> dict[str, Any]:
    """Returns the record of a data set in a JSON file.

    Raises:
        OSError: a file of the data set cannot be read.
    """
    found: dict[str, Any] = {"name": data_set.name, "checksum": data_set.checksum}
    if data_set.earlier_stages is not None:
        found["earlier_stages"] = [entry(stage) for stage in data_set.earlier_stages]
    if data_set.order is not None:
        found["order"] = data_set.order
    if data_set.remote_files:
        found["remote_files"] = list(data_set.remote_files)
    return found


def is_same_data(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Returns whether two entries are about the same data, without earlier stages.

    Checksums decide, and names if neither entry has one.
    """
    if one["checksum"] != other["checksum"]:
        return False
    return one["checksum"] is not None or one["name"] == other["name"]


def warn_if_trained_on(
    run_dir: str, data_set: DataSet, training_data: DataSet | None = None
) -> None:
    """Logs a warning if the data to evaluate is the training data of a run.

    The data of earlier stages of the training counts as well; see `is_same_data`.

    Args:
        run_dir: folder of the run.
        data_set: the data set to evaluate.
        training_data: that of this command. None: what the run was trained on.

    Raises:
        OSError: a file cannot be read.
        ValueError: run.json is damaged.
    """
    trained = training_data and entry(training_data)
    trained = trained or read_run(run_dir).get("training_data")
    if not trained:
        return
    evaluated = {"name": data_set.name, "checksum": data_set.checksum}
    stages = [*trained.get("earlier_stages", ()), trained]
    if not any(is_same_data(stage, evaluated) for stage in stages):
        return
    logger.warning(
        "The evaluation uses the training data (%s): the scores do not show how well "
        "the model does on new inputs.",
        ", ".join(data_set.paths) or data_set.name,
    )


def _sha256_of(path):
    digest = hashlib.sha256()
    with files.open_file(path, "rb") as file:
        while block := file.read(_BYTES_PER_READ):
            digest.update(block)
    return digest.hexdigest()


def _short_checksum(data_set):
    text = data_set.checksum or hashlib.sha256(data_set.name.encode()).hexdigest()
    return text[:_DIGITS]


def read_run(run_dir: str) -> dict[str, Any]:
    """Returns the content of run.json; empty if there is none.

    Raises:
        OSError: run.json cannot be read.
        ValueError: run.json is damaged.
    """
    return _read_json(os.path.join(run_dir, _RUN_FILE), _RUN_SHAPE)


def _locked(run_dir):
    """Locks data_sets.json, so that no other process changes it meanwhile."""
    path = os.path.join(run_dir, RECORD_FILE)
    return locks.output_file(path, flag="output_dir", waits=True)


def _read(run_dir) -> dict[str, Any]:
    return _read_json(os.path.join(run_dir, RECORD_FILE), {str: _ENTRY_SHAPE})


def _read_json(path, shape):
    if not files.exists(path):
        return {}
    advice = "expected the file that a run writes"
    return files.read_json(path, advice=advice, shape=shape)


def _write(run_dir, record, changed):
    if all(record.get(name) == entry for name, entry in changed.items()):
        return
    text = json.dumps(record | changed, indent=2, ensure_ascii=False, sort_keys=True)
    with files.complete_or_absent(os.path.join(run_dir, RECORD_FILE)) as file:
        file.write(text + "\n")
