"""What a run records of itself: flags, data, devices, versions, and how they differ."""

import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.training import result_files

# Names of machines and accounts, which are not recorded.
_ADDRESSES = ("gcp_project", "tpu_name", "tpu_zone")
# Flags of training that do not change what a run computes.
WITHOUT_EFFECT = (
    "do_train",
    "do_eval",
    "dry_run",
    "eval_batch_size",
    "iterations_per_loop",
    "keep_checkpoint_max",
    "log_every_steps",
    "output_dir",
    "save_checkpoints_steps",
    *_ADDRESSES,
)
CPU_INFO_FILE = "/proc/cpuinfo"
_PACKAGES = ("bert_tf", "tensorflow", "tensorflow-text", "keras", "numpy")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")

Changes = dict[str, tuple[Any, Any]]


def flags_of(options: options_module.Options) -> dict[str, Any]:
    """Returns the options by name, as JSON values, paths without their folders.

    Addresses and the project are left out, because a run's folder may be published.
    """
    # Through JSON, so that tuples become lists.
    flags = json.loads(json.dumps(dataclasses.asdict(options)))
    paths = {d.name for d in options_module.declarations(type(options)) if d.is_path}
    return {
        name: _without_folders(value) if name in paths else value
        for name, value in flags.items()
        if name not in _ADDRESSES
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


def changed_flags(recorded: Mapping[str, Any], options: Any) -> Changes:
    """Returns {flag: (recorded, now)} of the flags that differ from recorded ones."""
    return changed_values(recorded, flags_of(options)) if recorded else {}


def data_difference(
    recorded: Mapping[str, Any] | None, data_set: result_files.DataSet | None
) -> tuple[str, str] | None:
    """Returns the names of two data sets for a message; None if they are the same.

    Args:
        recorded: an entry of run.json. None: the data is unknown, thus not compared.
        data_set: of the command.
    """
    if recorded is None or data_set is None:
        return None
    if result_files.is_same_data(recorded, result_files.entry(data_set)):
        return None
    before, now = recorded["name"], data_set.name
    return before, now + (" (different content)" if before == now else "")


def check_data(
    run_dir: str,
    recorded: Mapping[str, Any] | None,
    data_set: result_files.DataSet | None,
) -> None:
    """Raises a ValueError if a run would resume on other data, or in another order.

    Args:
        run_dir: folder of the run.
        recorded: "training_data" in run.json.
        data_set: of the command that resumes the run.
    """
    if difference := data_difference(recorded, data_set):
        raise ValueError(
            f"{run_dir} contains a run that was trained on {difference[0]}, but this "
            f"command trains on {difference[1]}; use the same data, or another "
            "--output_dir."
        )
    if recorded is None or data_set is None:
        return
    orders = recorded.get("order"), data_set.order
    if orders[0] != orders[1]:
        before, now = (
            f"from remote files in {order}" if order else "in the order of local files"
            for order in orders
        )
        raise ValueError(
            f"{run_dir} contains a run that read its examples {before}, but this "
            f"command reads them {now}; read the files from where they were, or choose "
            "another --output_dir."
        )


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
    num_trained_parameters: int  # Fewer if layers are frozen.
    num_steps: int  # Optimizer steps, including those before a restart.
    examples_per_second: float | None  # None: this process took no step.
    devices: str  # See `describe_devices`.
    versions: Mapping[str, str | None]  # See `package_versions`.
    date: str  # Day of the last step, such as "2024-05-31".


def today() -> str:
    """Returns the day in UTC, such as "2024-05-31"."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def package_versions() -> dict[str, str | None]:
    """Returns the version of each package, or None if it is not installed."""
    versions: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def git_commit() -> str | None:
    """Returns the commit of the checkout that runs; None outside a checkout."""
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        done = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def describe_devices(strategy: tf.distribute.Strategy) -> str:
    """Returns the devices in words, such as "2 × NVIDIA H200" or "CPU (…, 8 cores)"."""
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
    return f"{replicas}CPU ({_cpu_name()}, {os.cpu_count()} cores)"


def _cpu_name():
    try:
        with open(CPU_INFO_FILE, encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # Only Linux has the file.
    return platform.processor() or platform.machine()
