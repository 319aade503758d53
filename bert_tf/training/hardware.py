"""What a run's devices are, in words."""

import os
import platform

import tensorflow as tf

CPU_INFO_FILE = "/proc/cpuinfo"


def description(strategy) -> str:
    """Returns the devices of a strategy: "2 × NVIDIA H200" or "CPU (…, 8 cores)"."""
    count = strategy.num_replicas_in_sync
    kinds = {_device_type(name) for name in strategy.extended.worker_devices}
    if "GPU" in kinds:
        gpu = tf.config.list_physical_devices("GPU")[0]
        name = tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
        return f"{count} × {name}"
    if "TPU" in kinds:
        return f"{count} TPU cores"
    replicas = f"{count} replicas on a " if count > 1 else ""
    return f"{replicas}CPU ({_cpu_name()}, {os.cpu_count()} cores)"


def _device_type(name):
    return tf.DeviceSpec.from_string(name).device_type


def _cpu_name():
    try:
        with open(CPU_INFO_FILE, encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # Another system than Linux.
    return platform.processor() or platform.machine()
