"""Settings of GPUs that have to be made before TensorFlow first uses one."""

import logging
import os
from typing import Any

import tensorflow as tf

from bert_tf.training import options as training_options

logger = logging.getLogger(__name__)

# Cards from this compute capability on (Ampere, 2020) have matrix units for bfloat16.
_BFLOAT16_CAPABILITY = (8, 0)
# TensorFlow's own switch for growing memory; a user who sets it decides.
_GROWTH_VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"


def prepare(options: training_options.DeviceOptions) -> list[Any]:
    """Returns the GPUs of this machine, set up for a run; [] for --device=cpu.

    TensorFlow takes memory as it needs it, instead of the whole card at once, so that
    several processes can share a card. That includes --device=cpu, because TensorFlow
    also sets up the GPUs that it does not use.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if _GROWTH_VARIABLE not in os.environ:
        for gpu in gpus:
            try:
                tf.config.experimental.set_memory_growth(gpu, True)
            except RuntimeError:  # TensorFlow already uses the GPU in this process.
                logger.debug(
                    "TensorFlow already uses %s; memory growth is as set.", gpu
                )
    if options.device == "cpu":
        return []
    if gpus and options.dtype == "float32" and all(map(_has_bfloat16, gpus)):
        logger.info(
            "This GPU has matrix units for bfloat16: --dtype=mixed_bfloat16 trains "
            "faster than float32 and needs less memory."
        )
    return gpus


def _has_bfloat16(gpu):
    details = tf.config.experimental.get_device_details(gpu)
    return details.get("compute_capability", (0, 0)) >= _BFLOAT16_CAPABILITY
