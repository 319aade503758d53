"""A loss that is no number: which step, and what it was computed from."""

import os

import numpy as np

from bert_tf import files
from bert_tf.training import loss_scale
from bert_tf.training import steps

BATCH_FILE = "non_finite_batch_{step}.npz"
_MIXED_FLOAT16 = "mixed_float16"


def num_finite(history, dtype):
    """Returns how many steps came before the first one without a finite loss.

    Args:
        history: dict of float32 [number of steps] with `loss`, `global_grad_norm` and,
            in float16, `loss_scale`.
        dtype: that of the run. With mixed_float16 a gradient may overflow: loss
            scaling then leaves the step out, and nothing is wrong until it can be
            scaled down no further.
    """
    has_norm = np.isfinite(history["global_grad_norm"])
    if dtype == _MIXED_FLOAT16:
        has_norm |= history[steps.LOSS_SCALE] > loss_scale.LEAST
    is_finite = np.isfinite(history["loss"]) & has_norm
    return len(is_finite) if is_finite.all() else int(np.argmin(is_finite))


def error(output_dir, step, values, batch):
    """Saves the batch of a step whose loss or gradient is no number.

    Args:
        output_dir: folder of the run.
        step: int, its number; the first one is 1.
        values: dict of floats: what the step computed.
        batch: dict of tensors [B, ...].

    Returns:
        ValueError: what to raise.

    Raises:
        OSError: the batch cannot be written.
    """
    path = os.path.join(output_dir, BATCH_FILE.format(step=step))
    remedy = "a lower --learning_rate"
    if steps.LOSS_SCALE in values:
        remedy += " or --dtype=mixed_bfloat16"
    with files.complete_or_absent(path, "wb") as file:
        np.savez(file, **{name: np.asarray(column) for name, column in batch.items()})
    return ValueError(
        f"{output_dir}: the loss of step {step} is {values['loss']:.4g} and the norm "
        f"of its gradient {values['global_grad_norm']:.4g}, at learning rate "
        f"{values['learning_rate']:.4g}; training stops, the checkpoints are as they "
        f"were. The step's batch is in {path}: look for what is wrong in it, or go on "
        f"with {remedy}."
    )
