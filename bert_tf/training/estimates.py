"""What a run will take, before it runs."""

import dataclasses
import math
import time

import numpy as np
import tensorflow as tf

from bert_tf.training import freezing

# A backward pass has two matrix products for every one of the forward pass.
BACKWARD_COST = 2
BYTES_PER_FLOAT = 4
# Gradient and Adam's two slots, beside the weight itself.
FLOATS_PER_TRAINED_PARAMETER = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimate:
    """Size and cost of a training run."""

    num_parameters: int  # Of model and head together.
    num_train_steps: int  # Optimizer steps that are left.
    flops_per_step: float  # Forward and backward matrix products of a global batch.
    memory_bytes: float  # Per device: weights, gradients, slots, kept activations.
    seconds: float  # At the speed of a bare matrix product on this device.

    def __str__(self):
        return "\n".join(
            [
                f"parameters        {self.num_parameters:,}",
                f"steps             {self.num_train_steps:,}",
                f"FLOPs per step    {self.flops_per_step:.3g}",
                f"memory per device {self.memory_bytes / 2**30:.2f} GiB (estimate)",
                f"time              {clock(self.seconds)} (at the speed of a bare "
                "matrix product here; the real run is slower)",
            ]
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """What is to be trained on."""

    num_examples: int  # Of an epoch.
    sequence_length: int  # S, of the longest batch: decides on the memory.
    padded_length: int  # Of a usual batch: decides on the time.
    sequences_per_example: float = 1  # 4 for a choice of four endings.


def padded_length(lengths, options) -> int:
    """Returns the length of a usual batch, as length buckets cut it.

    Args:
        lengths: integers [N], the places that each row uses.
        options: `FineTuningOptions` with `max_seq_length`.
    """
    # Of B rows, the longest is usually longer than all but one in B.
    longest = np.quantile(lengths, 1 - 1 / options.train_batch_size)
    buckets = [size for size in options.length_buckets if size >= longest]
    return min([*buckets, options.max_seq_length])


def estimate(
    trainer,
    *,
    sequence_length,
    sequences_per_example=1,
    num_predictions=0,
    keeps_logits=True,
    options=None,
    num_steps=None,
):
    """Returns the `Estimate` of a `loop.Trainer`'s run.

    Args:
        trainer: `loop.Trainer`.
        sequence_length: int, S.
        sequences_per_example: int; 4 for a choice of four endings.
        num_predictions: int, M; masked positions a sequence with a vocabulary-wide
            output.
        keeps_logits: bool; False where the backward pass computes them again.
        options: of another run of the same model, default the trainer's.
        num_steps: int, of that run; default those that are left of the trainer's.
    """
    model = trainer.model
    options = options or trainer.options
    if num_steps is None:
        num_steps = max(trainer.num_train_steps - trainer.step, 0)
    estimated = _estimate(
        model.config,
        options,
        sequence_length,
        sequences_per_example=sequences_per_example,
        num_predictions=num_predictions,
        keeps_logits=keeps_logits,
        num_parameters=model.count_params(),
        num_trained=sum(math.prod(v.shape) for v in model.trainable_variables),
        learns=freezing.trained_share(model),
        num_steps=num_steps,
        num_replicas=trainer.strategy.num_replicas_in_sync,
    )
    minutes = options.max_train_minutes
    return estimated if minutes is None else _in_time(estimated, 60.0 * minutes)


def _in_time(estimated, seconds):
    """Returns the estimate of what fits into some seconds."""
    num_steps = int(estimated.num_train_steps * seconds / estimated.seconds)
    return dataclasses.replace(estimated, num_train_steps=num_steps, seconds=seconds)


def before_building(config, options, workload: Workload) -> Estimate:
    """Returns the `Estimate` of fine-tuning on one device; builds no model.

    Args:
        config: `BertConfig`.
        options: `FineTuningOptions` with `num_train_epochs`.
        workload: what is to be trained on.
    """
    num_parameters = encoder_parameters(config)
    epochs = workload.num_examples * options.num_train_epochs
    return _estimate(
        config,
        options,
        workload.sequence_length,
        sequences_per_example=workload.sequences_per_example,
        num_predictions=0,
        num_parameters=num_parameters,
        num_trained=num_parameters,
        learns=1.0,
        num_steps=int(epochs / options.train_batch_size),
        num_replicas=1,
        padded_length=workload.padded_length,
    )


def encoder_parameters(config) -> int:
    """Returns the weights of an encoder with its pooler; heads add few."""
    hidden, inner = config.hidden_size, config.intermediate_size
    rows = config.vocab_size + config.type_vocab_size + config.max_position_embeddings
    square = hidden * hidden + hidden  # A dense layer with its biases.
    norm = 2 * hidden
    layer = 4 * square + 2 * hidden * inner + inner + hidden + 2 * norm
    return rows * hidden + norm + config.num_hidden_layers * layer + square


def _estimate(
    config,
    options,
    sequence_length,
    *,
    sequences_per_example,
    num_predictions,
    keeps_logits=True,
    num_parameters,
    num_trained,
    learns,
    num_steps,
    num_replicas,
    padded_length=None,
):
    sequences = options.train_batch_size * sequences_per_example
    forward = sequences * forward_flops(
        config, padded_length or sequence_length, num_predictions=num_predictions
    )
    recomputed = 1 if options.recompute_layers else 0
    flops = (1 + (BACKWARD_COST + recomputed) * learns) * forward
    parts = num_replicas * options.gradient_accumulation_steps
    num_kept = num_predictions if keeps_logits else 0
    kept = (
        sequences
        / parts
        * _activations(
            config, sequence_length, num_kept, recomputes=options.recompute_layers
        )
    )
    num_floats = num_parameters + FLOATS_PER_TRAINED_PARAMETER * num_trained
    speed = matrix_product_speed(config, options.dtype)
    return Estimate(
        num_parameters=num_parameters,
        num_train_steps=num_steps,
        flops_per_step=flops,
        memory_bytes=BYTES_PER_FLOAT * (num_floats + learns * kept),
        seconds=num_steps * flops / speed / num_replicas,
    )


def forward_flops(config, sequence_length, *, num_predictions=0):
    """Returns the FLOPs of the matrix products for one sequence, forward."""
    hidden, inner = config.hidden_size, config.intermediate_size
    projections = 2 * sequence_length * (4 * hidden**2 + 2 * hidden * inner)
    attention = 2 * 2 * sequence_length**2 * hidden
    encoder = config.num_hidden_layers * (projections + attention)
    head = 2 * num_predictions * (hidden**2 + hidden * config.vocab_size)
    return encoder + head + 2 * hidden**2


def _activations(config, sequence_length, num_predictions, *, recomputes):
    """Returns the floats that the backward pass keeps of one sequence."""
    # By layer: input, three projections, context, two sums, two norms and the input
    # of each dropout, all of width H; two of the inner width; scores, their softmax
    # and its dropout for every head.
    hidden, inner = config.hidden_size, config.intermediate_size
    tokens = sequence_length * (11 * hidden + 2 * inner)
    scores = 3 * config.num_attention_heads * sequence_length**2
    logits = 2 * num_predictions * config.vocab_size
    num_layers = config.num_hidden_layers
    if recomputes:
        # The inputs of all layers, and of one layer at a time all that it computes.
        return num_layers * sequence_length * hidden + tokens + scores + logits
    return num_layers * (tokens + scores) + logits


def matrix_product_speed(config, dtype, *, seconds=0.3):
    """Returns FLOPs per second of the encoder's widest matrix product, measured."""
    dtype = tf.as_dtype(dtype.removeprefix("mixed_"))
    rows = 4096
    left = tf.ones([rows, config.hidden_size], dtype)
    right = tf.ones([config.hidden_size, config.intermediate_size], dtype)
    tf.matmul(left, right).numpy()
    count, started = 0, time.monotonic()
    while time.monotonic() - started < seconds:
        tf.matmul(left, right).numpy()
        count += 1
    flops = 2 * rows * config.hidden_size * config.intermediate_size * count
    return flops / (time.monotonic() - started)


def clock(seconds) -> str:
    """Returns a time in words: "1 h 2 min 3 s", "under a second"."""
    if seconds < 1:
        return "under a second"
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours} h {rest // 60} min {rest % 60} s"
