"""What a run is made of on disk: weights, Adam's slots, the step."""

import logging

import numpy as np

from bert_tf.checkpoints import cut_table
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import rotation

logger = logging.getLogger(__name__)

GLOBAL_STEP = "global_step"


def state_variables(model, optimizer):
    """Returns {checkpoint name: variable} of weights, slots and the loss's scale.

    Slots are called WEIGHT/adam_m and WEIGHT/adam_v, as in the release; those of LAMB
    WEIGHT/lamb_m and WEIGHT/lamb_v.
    """
    weights = checkpoint_names.checkpoint_variables(model)
    state = dict(weights)
    if optimizer is not None:
        name_of = {
            id(getattr(variable, "variable", variable)): name
            for name, variable in weights.items()
        }
        for slot, variables in optimizer.slots().items():
            for weight, variable in zip(
                model.trainable_variables, variables, strict=True
            ):
                name = name_of[id(weight)]
                slot_variable = cut_table.without_padding(variable, weights[name])
                state[f"{name}/{slot}"] = slot_variable
        if optimizer.loss_scale is not None:
            state[checkpoint_names.LOSS_SCALE] = optimizer.loss_scale.scale
            state[checkpoint_names.LOSS_SCALE_STEPS] = optimizer.loss_scale.steps
    return state


def copies(model, optimizer, step, *, train_seconds=None):
    """Returns {checkpoint name: array} of weights, slots and step, in host memory.

    `train_seconds` is the time used by a run that has a time budget.
    """
    state = state_variables(model, optimizer)
    # Variables may change while the copies are written.
    arrays = {name: variable.value.numpy() for name, variable in state.items()}
    arrays[GLOBAL_STEP] = np.int64(step)
    if train_seconds is not None:
        arrays[checkpoint_names.TRAIN_SECONDS] = np.float64(train_seconds)
    return arrays


def restore(output_dir, model, optimizer):
    """Loads the last checkpoint of `output_dir`, if there is one.

    Args:
        output_dir: str.
        model: built `heads.TaskModel`.
        optimizer: of `optimizers.create_optimizer`, or None to leave the slots.

    Returns:
        int: finished optimizer steps; None where there is no checkpoint.

    Raises:
        ValueError: the checkpoint lacks a weight or slot, or has another shape.
    """
    prefix = rotation.latest(output_dir)
    if prefix is None:
        return None
    state = state_variables(model, optimizer)
    shapes = bundle.read_names_and_shapes(prefix)
    missing = [name for name in state if name not in shapes]
    if missing:
        raise ValueError(
            f"{prefix} cannot be continued: it lacks {len(missing)} tensors, the "
            f"first {missing[0]}; expected weights, slots and step of this model. Give "
            "it as --init_checkpoint to start from its weights in a new --output_dir."
        )
    step = _read_step(prefix, shapes)
    bundle.assign(prefix, state)
    if optimizer is not None:
        optimizer.iterations.assign(step)
    logger.info("Restored %s at step %d.", prefix, step)
    return step


def read_train_seconds(output_dir):
    """Returns the seconds that a run has used; 0 where no checkpoint tells."""
    prefix = rotation.latest(output_dir)
    if (
        prefix is None
        or checkpoint_names.TRAIN_SECONDS not in bundle.read_names_and_shapes(prefix)
    ):
        return 0.0
    return float(
        bundle.read(prefix, [checkpoint_names.TRAIN_SECONDS])[
            checkpoint_names.TRAIN_SECONDS
        ]
    )


def _read_step(prefix, shapes):
    if GLOBAL_STEP in shapes:
        return int(bundle.read(prefix, [GLOBAL_STEP])[GLOBAL_STEP])
    raise ValueError(
        f"{prefix} has no {GLOBAL_STEP}, so training cannot go on from it; give it as "
        "--init_checkpoint to start from its weights."
    )
