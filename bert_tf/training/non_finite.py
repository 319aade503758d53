"""Finds a step with a non-finite loss or gradient, and stops the run."""

import os
from collections.abc import Mapping
from typing import Any
from typing import NoReturn

import numpy as np

from bert_tf import files
from bert_tf.training import optimizers
from bert_tf.training import protocols
from bert_tf.training import steps

BATCH_FILE = "non_finite_batch_{step}.npz"


def count_finite_steps(history: Mapping[str, np.ndarray]) -> int:
    """Returns the number of steps before the first non-finite one.

    In float16 an overflowing gradient is not an error as long as loss scaling can
    handle it: the step is skipped and the scale is lowered. It is one when the scale
    cannot be lowered any further.

    Args:
        history: float32 [number of steps]: `loss`, `global_grad_norm` and, in float16,
            `loss_scale`.
    """
    is_handled = np.isfinite(history["global_grad_norm"])
    if steps.LOSS_SCALE in history:
        is_handled |= history[steps.LOSS_SCALE] > optimizers.MIN_LOSS_SCALE
    is_finite = np.isfinite(history["loss"]) & is_handled
    return len(is_finite) if is_finite.all() else int(np.argmin(is_finite))


def stop_training(
    output_dir: str,
    step: int,
    values: Mapping[str, float],
    batch: protocols.Tensors | None,
) -> NoReturn:
    """Saves the batch of a step with a non-finite loss or gradient, and raises.

    Args:
        output_dir: folder of the run.
        step: number of the step, from 1.
        values: what the step computed.
        batch: the global batch, [B, ...] each; None: another worker saves it.

    Raises:
        ValueError: always.
        OSError: the batch cannot be written.
    """
    path = os.path.join(output_dir, BATCH_FILE.format(step=step))
    remedy = "a lower --learning_rate"
    if steps.LOSS_SCALE in values:
        remedy += " or --dtype=mixed_bfloat16"
    if batch is not None:
        columns: dict[str, Any] = {n: np.asarray(rows) for n, rows in batch.items()}
        with files.complete_or_absent(path, "wb") as file:
            np.savez(file, **columns)
    raise ValueError(
        f"{output_dir}: training stopped at step {step} because its loss is "
        f"{values['loss']:.4g} and its gradient norm {values['global_grad_norm']:.4g} "
        f"(learning rate {values['learning_rate']:.4g}). Earlier checkpoints are "
        f"unaffected. The batch of this step is saved in {path}: check it for bad "
        "values, or start a new run from these weights, as --init_checkpoint, with "
        f"{remedy}."
    )
