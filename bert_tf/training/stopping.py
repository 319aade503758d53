"""Why a run ends.

A run ends with its last step or its time limit, or before: after a signal, after a loss
that is not finite, or when no evaluation improves its score.
"""

import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from types import FrameType
from typing import Any
from typing import NoReturn

import numpy as np

from bert_tf.optimization import schedules
from bert_tf.training import steps

# Number of steps of a run that only a time limit ends.
NO_STEP_LIMIT = 2**31 - 1
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A score is better when lower if its name ends in one of these.
LOWER_IS_BETTER = ("loss", "perplexity")


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


class Interrupts:
    """Delays the first Ctrl-C or SIGTERM until the run handles it.

    The run can then finish its step, and log, evaluate and save before it ends. A
    second Ctrl-C interrupts at once. Further SIGTERMs have no effect, because
    schedulers of preemptible machines may send several. Outside the main thread, where
    Python delivers no signals, this class does nothing.

    Example:
        with Interrupts() as interrupts:
            for step in steps:
                step()
                if interrupts.pending:
                    save()
                    interrupts.interrupt("the weights are saved")
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *unused_error: object) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    @property
    def pending(self) -> bool:
        """Whether a signal was received."""
        return self._received is not None

    def interrupt(self, saved: str) -> NoReturn:
        """Raises KeyboardInterrupt(number of the signal, what is saved).

        The command line turns the number into the exit code, 130 or 143. If this
        process received no signal, another worker did; that counts as a SIGTERM.
        """
        raise KeyboardInterrupt(self._received or signal.SIGTERM, saved)

    def _receive(self, number: int, unused_frame: FrameType | None) -> None:
        if self.pending and number == signal.SIGINT:
            raise KeyboardInterrupt(number)
        self._received = number


def count_finite_steps(history: Mapping[str, np.ndarray]) -> int:
    """Returns the number of steps before the first non-finite one.

    In float16 an overflowing gradient is not an error as long as loss scaling can
    handle it: the step is skipped and the scale is lowered. It is one when the scale
    cannot be lowered any further. The history is that of `steps.build_train_steps`.
    """
    is_handled = np.isfinite(history["global_grad_norm"])
    if steps.LOSS_SCALE in history:
        is_handled |= history[steps.LOSS_SCALE] > steps.MIN_LOSS_SCALE
    is_finite = np.isfinite(history["loss"]) & is_handled
    return len(is_finite) if is_finite.all() else int(np.argmin(is_finite))


def stop_training(output_dir: str, step: int, values: Mapping[str, float]) -> NoReturn:
    """Raises the ValueError of a step with a non-finite loss or gradient.

    Args:
        output_dir: folder of the run.
        step: number of the step, from 1.
        values: what the step computed.
    """
    remedy = "a lower --learning_rate"
    if steps.LOSS_SCALE in values:
        remedy += " or --dtype=mixed_bfloat16"
    raise ValueError(
        f"{output_dir}: training stopped at step {step} because its loss is "
        f"{values['loss']:.4g} and its gradient norm {values['global_grad_norm']:.4g} "
        f"(learning rate {values['learning_rate']:.4g}). Earlier checkpoints are "
        "unaffected: start a new run from their weights, as --init_checkpoint, with "
        f"{remedy}."
    )


def metric_of(scores: Collection[str], metrics: Sequence[str]) -> str:
    """Returns the first of some names of scores that an evaluation has.

    Raises:
        ValueError: it has none of them.
    """
    for name in metrics:
        if name in scores:
            return name
    raise ValueError(
        f"None of the scores {', '.join(metrics)} is among those of this run: "
        f"{', '.join(sorted(scores))}."
    )


class Selection:
    """Follows one score over the evaluations of a run.

    Args:
        metrics: the first of these that the evaluations have is followed.
        patience: number of evaluations in a row without a better score after which to
            stop; 0: never stop.
    """

    def __init__(self, metrics: Sequence[str], patience: int = 0):
        self.metrics = metrics
        self.metric = metrics[0]
        self.patience = patience
        self.best: float | None = None
        self.num_since_best = 0

    def replay(self, logged: Iterable[Mapping[str, float]]) -> None:
        """Records the evaluations in the lines of a run's log."""
        for line in logged:
            if not line.keys().isdisjoint(self.metrics):
                self.is_best(line)

    def is_best(self, scores: Mapping[str, float]) -> bool:
        """Records the next evaluation; returns whether it beats all before it.

        An equal score is not better: the earlier checkpoint stays in best/, and the
        evaluation uses up patience. NaN and infinity are never the best.

        Raises:
            ValueError: the scores have none of the metrics.
        """
        self.metric = metric_of(scores, self.metrics)
        score = scores[self.metric]
        sign = -1 if self.metric.endswith(LOWER_IS_BETTER) else 1
        is_better = math.isfinite(score) and (
            self.best is None or sign * score > sign * self.best
        )
        if is_better:
            self.best, self.num_since_best = score, 0
            return True
        self.num_since_best += 1
        return False

    def line(self, scores: Mapping[str, float]) -> str:
        """Returns the last evaluation as a line: the deciding score, then the others.

        Example:
            >>> selection = Selection(["eval_loss"])
            >>> selection.is_best({"eval_accuracy": 0.5, "eval_loss": 0.25})
            True
            >>> selection.line({"eval_accuracy": 0.5, "eval_loss": 0.25})
            'loss 0.2500 (best so far), accuracy 0.5000'
        """
        comparison = "best so far"
        if self.num_since_best:
            known = "none" if self.best is None else f"{self.best:.4f}"
            comparison = f"best: {known}"
        names = [self.metric, *sorted(scores.keys() - {self.metric})]
        texts = [f"{n.removeprefix('eval_')} {scores[n]:.4f}" for n in names]
        return ", ".join([f"{texts[0]} ({comparison})", *texts[1:]])

    @property
    def should_stop(self) -> bool:
        """Whether the patience is used up."""
        return 0 < self.patience <= self.num_since_best
