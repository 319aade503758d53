"""Data sets, and the names of files with results on them.

The command that trains a run names its data sets: run.json records them. Results on
these are in eval_results.txt, predictions.jsonl and so on. Files with results on any
other data set contain its name, such as eval_results-ax.txt, so an evaluation only
replaces earlier results on the same data.
"""

import contextlib
import dataclasses
import functools
import hashlib
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from bert_tf import files

logger = logging.getLogger(__name__)

RUN_FILE = "run.json"
_BYTES_PER_READ = 1 << 20
_DIGITS = 8  # Of a checksum in a file name.
# Recorded flags; see `json_values.unexpected`.
FLAGS_SHAPE = {str: (str | int | float | bool | None, [str | int | float | bool])}
_ENTRY_SHAPE = {"name": str, "checksum": str | None}
_RUN_SHAPE = {
    "flags?": FLAGS_SHAPE,
    "training_data?": (
        None,
        {**_ENTRY_SHAPE, "order?": str},
    ),
    "results?": {str: _ENTRY_SHAPE},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set to evaluate or to predict, identified by its name and content."""

    name: str  # Such as "mnli", or the name of a file without its extension.
    paths: tuple[str, ...] = ()  # Its files. Empty: the name alone identifies it.
    # Large files are identified by their names and sizes instead of their contents.
    by_size: bool = False
    # Of training data: the order that remote files are read in. None: as local files.
    order: str | None = None
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
        if not self.by_size:
            lines = [self.sha256(path) for path in self.paths]
            if len(lines) == 1:
                return lines[0]
        else:
            sizes = files.map_paths(files.size, self.paths)
            names = map(os.path.basename, self.paths)
            lines = [f"{name} {size}" for name, size in zip(names, sizes, strict=True)]
        return hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()


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
        "" for the data set that the training command names, or if it names none.
        Otherwise "-NAME", or "-NAME-CHECKSUM" if both have the same name.

    Raises:
        OSError: a file cannot be read.
        ValueError: run.json is damaged.
    """
    recorded = own_entry(run_dir, file_name)
    if recorded is None:
        return ""
    suffix = "-" + re.sub(r"[^\w.+-]+", "_", data_set.name).strip("_")
    if recorded["name"] != data_set.name:
        return suffix
    if None in (recorded["checksum"], data_set.checksum):
        return ""
    if recorded["checksum"] == data_set.checksum:
        return ""
    return f"{suffix}-{str(data_set.checksum)[:_DIGITS]}"


def with_suffix(file_name: str, suffix: str) -> str:
    """Returns a file name with a suffix before its extension."""
    root, extension = os.path.splitext(file_name)
    return f"{root}{suffix}{extension}"


def own_entry(run_dir: str, file_name: str) -> dict[str, str | None] | None:
    """Returns the entry of the data that the training command names, if it names any.

    Args:
        run_dir: folder of the run.
        file_name: the main file of the results.

    Raises:
        OSError: run.json cannot be read.
        ValueError: run.json is damaged.
    """
    return read_run(run_dir).get("results", {}).get(file_name)


def entry(data_set: DataSet, *, may_be_missing: bool = False) -> dict[str, Any]:
    """Returns the record of a data set in a JSON file.

    Args:
        data_set: the data set.
        may_be_missing: whether its files need not exist. It then has no checksum.

    Raises:
        OSError: a file of the data set cannot be read.
    """
    record: dict[str, Any] = {"name": data_set.name, "checksum": None}
    ignored = (OSError,) if may_be_missing else ()
    with contextlib.suppress(*ignored):
        record["checksum"] = data_set.checksum
    if data_set.order is not None:
        record["order"] = data_set.order
    return record


def is_same_data(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Returns whether two entries are about the same data.

    Checksums decide, and names if neither entry has one.
    """
    if one["checksum"] != other["checksum"]:
        return False
    return one["checksum"] is not None or one["name"] == other["name"]


def warn_if_trained_on(
    run_dir: str, data_set: DataSet, training_data: DataSet | None = None
) -> None:
    """Logs a warning if the data to evaluate is the training data of a run.

    Args:
        run_dir: folder of the run.
        data_set: the data set to evaluate.
        training_data: that of this command. None: what the run was trained on.

    Raises:
        OSError, ValueError: a file cannot be read, or run.json is damaged.
    """
    trained = training_data and entry(training_data)
    trained = trained or read_run(run_dir).get("training_data")
    if not trained or not is_same_data(trained, entry(data_set)):
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


def read_run(run_dir: str) -> dict[str, Any]:
    """Returns the content of run.json; empty if there is none.

    Raises:
        OSError: run.json cannot be read.
        ValueError: run.json is damaged.
    """
    path = os.path.join(run_dir, RUN_FILE)
    if not files.exists(path):
        return {}
    advice = "expected the file that a run writes"
    return files.read_json(path, advice=advice, shape=_RUN_SHAPE)
