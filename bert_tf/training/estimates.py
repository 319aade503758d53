"""Estimates the size, memory and time of a run before it starts."""

import dataclasses
import math
import time
from typing import Any

import tensorflow as tf

from bert_tf.training import building
from bert_tf.training import loop
from bert_tf.training import options as training_options

# A backward pass has two matrix products for every one of the forward pass: one for
# the gradient of the weights, one for the gradient of the inputs.
BACKWARD_COST = 2
BYTES_PER_FLOAT = 4
# The gradient and Adam's two slots.
FLOATS_PER_TRAINED_PARAMETER = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimate:
    """Size and cost of a training run."""

    num_parameters: int
    num_train_steps: int  # Optimizer steps that remain.
    flops_per_step: float  # Forward and backward matrix products of a global batch.
    memory_bytes: float  # Per device: weights, gradients, slots, kept activations.
    seconds: float  # At the speed of a plain matrix product on this device.

    def __str__(self):
        return "\n".join(
            [
                f"parameters        {self.num_parameters:,}",
                f"steps             {self.num_train_steps:,}",
                f"FLOPs per step    {self.flops_per_step:.3g}",
                f"memory per device {self.memory_bytes / 2**30:.2f} GiB (estimate)",
                f"time              {format_seconds(self.seconds)} (at this machine's "
                "speed of a plain matrix product; the real run is slower)",
            ]
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """The rows of a training step, and what the model computes for them."""

    sequence_length: int  # S of the longest batch.
    sequences_per_example: float = 1  # 4 for multiple choice with four endings.
    # M, positions per sequence with an output over the vocabulary, and whether these
    # outputs are kept for the backward pass.
    num_predictions: int = 0
    keeps_logits: bool = True


def estimate(
    trainer: loop.Trainer,
    workload: Workload,
    *,
    options: training_options.TrainerOptions | None = None,
    num_steps: int | None = None,
) -> Estimate:
    """Returns the `Estimate` of a trainer's run.

    Args:
        trainer: the run.
        workload: the data.
        options: of another run of the same model; default: the trainer's.
        num_steps: steps of that run; default: those that the trainer has left.
    """
    model, options = trainer.model, options or trainer.options
    config, length = model.config, workload.sequence_length
    if num_steps is None:
        num_steps = max(trainer.num_train_steps - trainer.step, 0)
    num_replicas = trainer.strategy.num_replicas_in_sync
    trained_share = building.trained_share(model)
    num_trained = sum(math.prod(v.shape) for v in model.trainable_variables)
    sequences = options.train_batch_size * workload.sequences_per_example
    forward = sequences * forward_flops(
        config,
        length,
        num_predictions=workload.num_predictions,
        reads_all_positions=model.reads_all_positions,
    )
    recomputed = 1 if options.recompute_layers else 0
    flops = (1 + (BACKWARD_COST + recomputed) * trained_share) * forward
    kept = _activations(
        config,
        length,
        workload.num_predictions if workload.keeps_logits else 0,
        recomputes=options.recompute_layers,
    )
    kept *= sequences / (num_replicas * options.gradient_accumulation_steps)
    num_floats = model.count_params() + FLOATS_PER_TRAINED_PARAMETER * num_trained
    speed = matrix_product_speed(config, options.dtype)
    seconds = num_steps * flops / speed / num_replicas
    if trainer.time_limit is not None:
        limit = 60.0 * trainer.time_limit.minutes
        num_steps, seconds = int(num_steps * limit / seconds), limit
    return Estimate(
        num_parameters=model.count_params(),
        num_train_steps=num_steps,
        flops_per_step=flops,
        memory_bytes=BYTES_PER_FLOAT * (num_floats + trained_share * kept),
        seconds=seconds,
    )


def forward_flops(
    config: Any,
    sequence_length: int,
    *,
    num_predictions: int = 0,
    reads_all_positions: bool = True,
) -> float:
    """Returns the FLOPs of a step's forward matrix products for one sequence.

    Args:
        config: `BertConfig`.
        sequence_length: S.
        num_predictions: M, positions with an output over the vocabulary.
        reads_all_positions: whether the last layer is computed at all positions, or
            only at M + 1; see `heads.TaskModel`.
    """
    hidden, inner = config.hidden_size, config.intermediate_size

    def layer(num_positions):
        keys_and_values = 2 * sequence_length * 2 * hidden**2
        per_position = 2 * hidden**2 + 2 * hidden * inner + 2 * sequence_length * hidden
        return keys_and_values + 2 * num_positions * per_position

    last = sequence_length if reads_all_positions else num_predictions + 1
    encoder = (config.num_hidden_layers - 1) * layer(sequence_length) + layer(last)
    head = 2 * num_predictions * (hidden**2 + hidden * config.vocab_size)
    return encoder + head + 2 * hidden**2


def _activations(config, sequence_length, num_predictions, *, recomputes):
    """Returns the floats kept for the backward pass of one sequence."""
    # Per layer: 11 of width H (input, three projections, context, two sums, two norms,
    # the inputs of two dropouts), two of the inner width, and per head the scores,
    # their softmax and its dropout.
    hidden, inner = config.hidden_size, config.intermediate_size
    tokens = sequence_length * (11 * hidden + 2 * inner)
    scores = 3 * config.num_attention_heads * sequence_length**2
    logits = 2 * num_predictions * config.vocab_size
    num_layers = config.num_hidden_layers
    if recomputes:
        # The inputs of all layers, and the activations of one layer at a time.
        return num_layers * sequence_length * hidden + tokens + scores + logits
    return num_layers * (tokens + scores) + logits


def matrix_product_speed(config: Any, dtype: str, *, seconds: float = 0.3) -> float:
    """Measures the FLOPs per second of the encoder's widest matrix product."""
    compute_dtype = tf.as_dtype(dtype.removeprefix("mixed_"))
    rows = 4096
    left = tf.ones([rows, config.hidden_size], compute_dtype)
    right = tf.ones([config.hidden_size, config.intermediate_size], compute_dtype)
    tf.matmul(left, right).numpy()
    count, started = 0, time.monotonic()
    while time.monotonic() - started < seconds:
        tf.matmul(left, right).numpy()
        count += 1
    flops = 2 * rows * config.hidden_size * config.intermediate_size * count
    return flops / (time.monotonic() - started)


def format_seconds(seconds: float) -> str:
    """Returns a duration in words, such as "1 h 2 min 3 s" or "under a second"."""
    if seconds < 1:
        return "under a second"
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours} h {rest // 60} min {rest % 60} s"
