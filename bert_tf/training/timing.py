"""The clock of a run: steps per call, the time limit, and what --dry_run measures."""

import dataclasses
import datetime
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.optimization import schedules
from bert_tf.training import distribution

# Target duration of a call from the host: short enough for the progress bar to move
# and for Ctrl-C to be noticed, long enough for the host's overhead not to matter.
SECONDS_PER_CALL = 1.0
# Number of steps of a run that only a time limit ends.
NO_STEP_LIMIT = 2**31 - 1
# Of --dry_run. The first steps compile, and choose how to compute each shape.
_WARM_UP_STEPS, _TIMED_STEPS = 2, 5


class Pace:
    """Measures calls of several steps each, and sets the length of the next one."""

    def __init__(self, batch_size: int):
        self._batch_size = batch_size
        self._speeds: list[float] = []
        self.num_steps = 1  # That the next call may take.

    def record_call(self, num_steps: int, seconds: float) -> float:
        """Records a call and returns its examples per second."""
        # A checkpoint that is due can cut a call short, so a full one is estimated.
        seconds_of_full_call = self.num_steps * seconds / num_steps
        if seconds_of_full_call < SECONDS_PER_CALL / 2:
            self.num_steps *= 2
        elif seconds_of_full_call > 2 * SECONDS_PER_CALL:
            self.num_steps = max(1, self.num_steps // 2)
        speed = num_steps * self._batch_size / seconds
        self._speeds += [speed] * num_steps
        return speed

    @property
    def median_speed(self) -> float | None:
        """Examples per second of the median step; None before the first call."""
        return statistics.median(self._speeds) if self._speeds else None


def is_logged(step: int, num_steps: int) -> bool:
    """Returns whether a step is among those that a run logs.

    A short run logs 50 steps or more, so that its curves show something, and a long run
    every hundredth step, as the release did.

    Args:
        step: from 1.
        num_steps: of the run.
    """
    return step % min(100, max(1, num_steps // 50)) == 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeLimit:
    """Ends a run after some time instead of after a number of steps."""

    minutes: float  # In all, evaluations and earlier parts of a resumed run included.
    warmup_proportion: float = 0.1  # Share of the time over which the rate rises.


class TimeBudget:
    """Counts the time of a run and sets the learning rate that follows from it.

    Such a run is not a function of its seed: how many steps it takes, and at which
    rates, depends on the speed of the machine.

    Args:
        limit: None: the run takes a number of steps.
        learning_rate: at its peak.
        agree: returns one number for all workers, given each worker's own.

    Attributes:
        schedule: the learning rate; None without a limit.
    """

    def __init__(
        self,
        limit: TimeLimit | None,
        learning_rate: float,
        agree: Callable[[float], float],
    ):
        self.seconds: float | None = None
        self.schedule: Any = None
        if limit is not None:
            self.seconds = 60.0 * limit.minutes
            self.schedule = schedules.WarmupLinearDecayOfTime(
                learning_rate, limit.warmup_proportion
            )
        self._clock = lambda: agree(_now())
        self._used_before = 0.0
        self._started: float | None = None

    def start(self, used_seconds: float) -> None:
        """Starts the clock after `used_seconds` of earlier parts of the run."""
        self._used_before = used_seconds
        self._started = self._clock()

    @property
    def used_seconds(self) -> float | None:
        """Seconds used so far; None if the run takes a number of steps."""
        if self.seconds is None or self._started is None:
            return None
        return self._used_before + self._clock() - self._started

    @property
    def share_used(self) -> float | None:
        """Share of the time that is over; None if the run takes a number of steps."""
        used = self.used_seconds
        return None if used is None or self.seconds is None else used / self.seconds

    @property
    def is_spent(self) -> bool:
        """Whether the time is up."""
        return (self.share_used or 0.0) >= 1

    def set_rate(self) -> None:
        """Sets the learning rate of the next steps."""
        if (share := self.share_used) is not None:
            self.schedule.share_done.assign(min(share, 1.0))

    def is_warmed_up(self, step: int, num_warmup_steps: int) -> bool:
        """Returns whether the learning rate has reached its peak."""
        if (share := self.share_used) is None:
            return step >= num_warmup_steps
        return share >= self.schedule.warmup_proportion

    def amount_done(self, step: int, num_train_steps: int) -> tuple[float, float, str]:
        """Returns what a progress bar shows: amount done, total amount, unit."""
        if (share := self.share_used) is None or self.seconds is None:
            return step, num_train_steps, "steps"
        return min(share, 1.0) * self.seconds, self.seconds, "s"


def _now():
    return time.monotonic()


def measure(trainer: Any, examples: Any, *, num_steps: int | None = None) -> str:
    """Takes a few steps, which are not saved; returns the size and time of the run.

    Args:
        trainer: `loop.Trainer` of the run.
        examples: what it trains on.
        num_steps: steps on these examples; default: those that the trainer has left.
    """
    if num_steps is None:
        num_steps = max(trainer.num_train_steps - trainer.step, 0)
    count = min(num_steps, _WARM_UP_STEPS + _TIMED_STEPS)
    train_steps, iterator = trainer.prepare_steps(examples)
    durations = []
    for number in range(count):
        started = time.monotonic()
        losses = train_steps(iterator, tf.constant(1))["loss"].numpy()
        durations.append(time.monotonic() - started)
        values = {"loss": float(losses[0])}
        progress_module.report(
            "measure", number + 1, count, unit="steps", values=values
        )
    timed = durations[_WARM_UP_STEPS:] or durations[-1:] or [0.0]
    seconds = num_steps * statistics.median(timed)
    if (limit := trainer.budget.seconds) is not None and seconds:
        num_steps, seconds = int(num_steps * limit / seconds), limit
    lines = [
        f"parameters        {trainer.model.count_params():,}",
        f"steps             {num_steps:,}",
    ]
    if (memory := _peak_memory(trainer.strategy)) is not None:
        lines.append(f"memory            {memory / 2**30:.2f} GiB")
    lines.append(
        f"time              {datetime.timedelta(seconds=int(seconds))} (at the speed "
        "of a few steps now; evaluations come on top)"
    )
    return "\n".join(lines)


def _peak_memory(strategy):
    """Returns the peak of a GPU's memory or of this process's, in bytes."""
    if distribution.runs_on(strategy, "TPU"):
        return None
    if distribution.runs_on(strategy, "GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
