"""Facts about a run: its size, devices, package versions and date."""

import dataclasses
import datetime
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping

import tensorflow as tf

CPU_INFO_FILE = "/proc/cpuinfo"
_PACKAGES = ("bert_tf", "tensorflow", "tensorflow-text", "keras", "numpy")


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
