"""What a run records in run.json: its flags, data sets, devices and versions.

The command that trains a run names its data sets: run.json records them. Results on
these are in eval_results.txt, predictions.jsonl and so on. Files with results on any
other data set contain its name, such as eval_results-ax.txt, so an evaluation only
replaces earlier results on the same data.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import re
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf import options as options_module

logger = logging.getLogger(__name__)

RUN_FILE = "run.json"
_BYTES_PER_READ = 1 << 20
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
_PACKAGES = ("bert_tf", "tensorflow", "tensorflow-text", "keras", "numpy")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")

Changes = dict[str, tuple[Any, Any]]


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
            digest = hashlib.sha256()
            with files.open_file(path, "rb") as file:
                while block := file.read(_BYTES_PER_READ):
                    digest.update(block)
            self._checksum_of[path] = digest.hexdigest()
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

    Its scores may depend on further files, such as a corpus.
    """
    return DataSet(name=stem(path), paths=(path, *more_paths))


def stem(path: str) -> str:
    """Returns the name of a file without its folder and extension."""
    return os.path.splitext(os.path.basename(path))[0]


def with_suffix(file_name: str, suffix: str) -> str:
    """Returns a file name with a suffix before its extension."""
    root, extension = os.path.splitext(file_name)
    return f"{root}{suffix}{extension}"


def entry(data_set: DataSet, *, may_be_missing: bool = False) -> dict[str, Any]:
    """Returns the record of a data set in a JSON file.

    A missing file raises an OSError; if it `may_be_missing`, there is no checksum.
    """
    record: dict[str, Any] = {"name": data_set.name, "checksum": None}
    with contextlib.suppress(*((OSError,) if may_be_missing else ())):
        record["checksum"] = data_set.checksum
    return record if data_set.order is None else record | {"order": data_set.order}


def _is_same_data(one, other):
    """Returns whether two entries are about the same data: by checksum, else name."""
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
    if trained and _is_same_data(trained, entry(data_set)):
        logger.warning(
            "The evaluation uses the training data (%s): the scores do not show how "
            "well the model does on new inputs.",
            ", ".join(data_set.paths) or data_set.name,
        )


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


def flags_of(options: options_module.Options) -> dict[str, Any]:
    """Returns the options by name, as JSON values, paths without their folders."""
    # Through JSON, so that tuples become lists.
    flags = json.loads(json.dumps(dataclasses.asdict(options)))
    paths = {d.name for d in options_module.declarations(type(options)) if d.is_path}
    return {
        name: _without_folders(value) if name in paths else value
        for name, value in flags.items()
    }


def short_name(path: str) -> str:
    """Returns the name of a file or folder without the folders above it.

    The prefix of a checkpoint and the folder best/ keep the folder that contains them,
    which says what they are. Names of models on a hub remain: they are not paths.

    Example:
        >>> short_name("/models/uncased/bert_model.ckpt"), short_name("/data/dev.tsv")
        ('uncased/bert_model.ckpt', 'dev.tsv')
    """
    if path.startswith(files.HUB_PREFIX):
        return path
    if _HUB_NAME.fullmatch(path) and not files.exists(path) and ".ckpt" not in path:
        return path
    folder, name = os.path.split(path.rstrip("/"))
    if "model.ckpt" in name or name.endswith(".ckpt") or name == "best":
        return "/".join(filter(None, (os.path.basename(folder), name)))
    return name


def changed_flags(
    recorded: Mapping[str, Any],
    options: options_module.Options,
    *,
    may_change: Collection[str],
) -> Changes:
    """Returns {flag: (recorded, now)} of flags that differ and must not.

    Flags whose kind (`on_resume`) is in `may_change` may differ. Without recorded
    flags, nothing is compared.
    """
    declared = options_module.declarations(type(options))
    fixed = {one.name for one in declared if one.on_resume not in may_change}
    changed = changed_values(recorded, flags_of(options)) if recorded else {}
    return {name: pair for name, pair in changed.items() if name in fixed}


def data_difference(
    recorded: Mapping[str, Any] | None, data_set: DataSet | None
) -> tuple[str, str] | None:
    """Returns descriptions of two data sets; None if they are the same, in one order.

    None as an entry of run.json, or as a data set, means unknown: nothing is compared.
    """
    if recorded is None or data_set is None:
        return None
    before, now = recorded["name"], data_set.name
    if not _is_same_data(recorded, entry(data_set)):
        return before, now + (" (different content)" if before == now else "")
    orders = recorded.get("order"), data_set.order
    if orders[0] == orders[1]:
        return None
    before, now = (
        f"{now}, from remote files in {order}" if order else f"{now}, from local files"
        for order in orders
    )
    return before, now


def changed_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """Returns {name: (before, after)} of the values in which two dicts differ."""
    names = sorted(before.keys() | after.keys())
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _without_folders(value):
    if isinstance(value, str):
        return ",".join(map(short_name, value.split(",")))
    return list(map(_without_folders, value)) if isinstance(value, list) else value


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """Facts about a finished training, for its model card."""

    num_parameters: int
    num_trained_parameters: int  # Fewer with --feature_based.
    num_steps: int  # Optimizer steps, including those before a restart.
    # Of this process's median step; None: it took no step.
    examples_per_second: float | None
    devices: str  # See `describe_devices`.
    versions: Mapping[str, str | None]  # See `package_versions`.
    date: str  # Day of the last step, such as "2024-05-31".


def package_versions() -> dict[str, str | None]:
    """Returns the version of each package, or None if it is not installed."""
    versions: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def describe_devices(strategy: Any) -> str:
    """Returns the devices in words, such as "2 × NVIDIA H200" or "CPU (8 cores)"."""
    import tensorflow as tf  # Tools that only read run.json do without it.

    count = strategy.num_replicas_in_sync
    kinds = {
        tf.DeviceSpec.from_string(name).device_type
        for name in strategy.extended.worker_devices
    }
    if "GPU" in kinds:
        gpu = tf.config.list_physical_devices("GPU")[0]
        name = tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
        return f"{count} × {name}"
    if "TPU" in kinds:
        return f"{count} TPU cores"
    replicas = f"{count} replicas on a " if count > 1 else ""
    return f"{replicas}CPU ({os.cpu_count()} cores)"
