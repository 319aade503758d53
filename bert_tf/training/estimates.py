"""Estimates the size, memory and time of a run before it starts."""

import dataclasses
import math
import time
from typing import Any

import numpy as np
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
    """The data of a training run, and what the model does with it."""

    num_examples: int = 0  # Per epoch.
    sequence_length: int  # S of the longest batch; determines the memory.
    padded_length: int | None = None  # S of a typical batch; determines the time.
    sequences_per_example: float = 1  # 4 for multiple choice with four endings.
    reads_all_positions: bool = True  # See `heads.TaskModel`.
    # M, positions per sequence with an output over the vocabulary, and whether these
    # outputs are kept for the backward pass.
    num_predictions: int = 0
    keeps_logits: bool = True


def padded_length(lengths: np.ndarray, options: Any) -> int:
    """Returns the length of a typical batch after padding to length buckets.

    Args:
        lengths: integers [N], the number of tokens in each row.
        options: `FineTuningOptions` of a task, with `max_seq_length`.
    """
    # The longest of B rows is about the quantile 1 - 1 / B of all rows.
    longest = np.quantile(lengths, 1 - 1 / options.train_batch_size)
    buckets = [size for size in options.length_buckets if size >= longest]
    return min([*buckets, options.max_seq_length])


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
        workload: the data. `num_examples` and `reads_all_positions` are ignored.
        options: of another run of the same model; default: the trainer's.
        num_steps: steps of that run; default: those that the trainer has left.
    """
    model = trainer.model
    if num_steps is None:
        num_steps = max(trainer.num_train_steps - trainer.step, 0)
    estimated = _estimate(
        model.config,
        options or trainer.options,
        dataclasses.replace(workload, reads_all_positions=model.reads_all_positions),
        num_parameters=model.count_params(),
        num_trained=sum(math.prod(v.shape) for v in model.trainable_variables),
        trained_share=building.trained_share(model),
        num_steps=num_steps,
        num_replicas=trainer.strategy.num_replicas_in_sync,
    )
    if trainer.time_limit is None:
        return estimated
    seconds = 60.0 * trainer.time_limit.minutes
    num_steps = int(num_steps * seconds / estimated.seconds)
    return dataclasses.replace(estimated, num_train_steps=num_steps, seconds=seconds)


def estimate_fine_tuning(
    config: Any,
    options: training_options.TrainerOptions,
    workload: Workload,
    *,
    num_train_epochs: float,
) -> Estimate:
    """Returns the `Estimate` of fine-tuning on one device, without building a model.

    Args:
        config: `BertConfig`.
        options: of the run.
        workload: the data.
        num_train_epochs: passes over the data.
    """
    num_parameters = count_encoder_parameters(config)
    num_rows = workload.num_examples * num_train_epochs
    return _estimate(
        config,
        options,
        workload,
        num_parameters=num_parameters,
        num_trained=num_parameters,
        trained_share=1.0,
        num_steps=int(num_rows / options.train_batch_size),
        num_replicas=1,
    )


def count_encoder_parameters(config: Any) -> int:
    """Returns the number of weights of an encoder with its pooler."""
    hidden, inner = config.hidden_size, config.intermediate_size
    rows = config.vocab_size + config.type_vocab_size + config.max_position_embeddings
    square = hidden * hidden + hidden  # A dense layer, [H, H] and its bias.
    norm = 2 * hidden
    layer = 4 * square + 2 * hidden * inner + inner + hidden + 2 * norm
    return rows * hidden + norm + config.num_hidden_layers * layer + square


def _estimate(
    config,
    options,
    workload,
    *,
    num_parameters,
    num_trained,
    trained_share,
    num_steps,
    num_replicas,
):
    length, num_predictions = workload.sequence_length, workload.num_predictions
    sequences = options.train_batch_size * workload.sequences_per_example
    forward = sequences * forward_flops(
        config,
        workload.padded_length or length,
        num_predictions=num_predictions,
        reads_all_positions=workload.reads_all_positions,
    )
    recomputed = 1 if options.recompute_layers else 0
    flops = (1 + (BACKWARD_COST + recomputed) * trained_share) * forward
    parts = num_replicas * options.gradient_accumulation_steps
    kept = _activations(
        config,
        length,
        num_predictions if workload.keeps_logits else 0,
        recomputes=options.recompute_layers,
    )
    kept *= sequences / parts
    num_floats = num_parameters + FLOATS_PER_TRAINED_PARAMETER * num_trained
    speed = matrix_product_speed(config, options.dtype)
    return Estimate(
        num_parameters=num_parameters,
        num_train_steps=num_steps,
        flops_per_step=flops,
        memory_bytes=BYTES_PER_FLOAT * (num_floats + trained_share * kept),
        seconds=num_steps * flops / speed / num_replicas,
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
