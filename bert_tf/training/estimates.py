"""Measures the size, memory and time of a run in its first steps: `--dry_run`."""

import dataclasses
import resource
import statistics
import sys
import time
from typing import Any

import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.training import distribution
from bert_tf.training import loop

# The first steps compile, and choose how to compute each shape.
_WARM_UP_STEPS, _TIMED_STEPS = 2, 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimate:
    """Size and cost of a training run."""

    num_parameters: int
    num_train_steps: int  # Optimizer steps that remain.
    seconds: float  # At the speed of the measured steps.
    memory_bytes: int | None  # Peak of the measured steps. None: unknown, as on a TPU.

    def __str__(self):
        lines = [
            f"parameters        {self.num_parameters:,}",
            f"steps             {self.num_train_steps:,}",
        ]
        if self.memory_bytes is not None:
            lines.append(f"memory            {self.memory_bytes / 2**30:.2f} GiB")
        lines.append(
            f"time              {format_seconds(self.seconds)} (at the speed of a few "
            "steps now; evaluations come on top)"
        )
        return "\n".join(lines)


def measure(
    trainer: loop.Trainer, examples: Any, *, num_steps: int | None = None
) -> Estimate:
    """Takes a few steps, which are not saved; returns the `Estimate` of the run.

    Args:
        trainer: the run.
        examples: what it trains on.
        num_steps: steps on these examples; default: those that the trainer has left.
    """
    if num_steps is None:
        num_steps = max(trainer.num_train_steps - trainer.step, 0)
    count = min(num_steps, _WARM_UP_STEPS + _TIMED_STEPS)
    train_steps, iterator = trainer.prepare_steps(examples)
    durations = [0.0]
    for number in range(count):
        started = time.monotonic()
        batches = distribution.steps_iterator(iterator, 1)
        losses = train_steps(batches, tf.constant(1))["loss"].numpy()
        durations.append(time.monotonic() - started)
        values = {"loss": float(losses[0])}
        progress_module.report(
            "measure", number + 1, count, unit="steps", values=values
        )
    seconds = num_steps * statistics.median(durations[-_TIMED_STEPS:])
    if trainer.time_limit is not None:
        limit = 60.0 * trainer.time_limit.minutes
        num_steps, seconds = int(num_steps * limit / seconds), limit
    return Estimate(
        num_parameters=trainer.model.count_params(),
        num_train_steps=num_steps,
        seconds=seconds,
        memory_bytes=_peak_memory(trainer.strategy),
    )


def _peak_memory(strategy):
    """Returns the peak of a GPU's memory or of this process's, in bytes."""
    if distribution.runs_on(strategy, "TPU"):
        return None
    if distribution.runs_on(strategy, "GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def format_seconds(seconds: float) -> str:
    """Returns a duration in words, such as "1 h 2 min 3 s" or "under a second"."""
    if seconds < 1:
        return "under a second"
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours} h {rest // 60} min {rest % 60} s"
