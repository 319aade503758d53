"""How long a run may take, over all its parts, and the learning rate that follows."""

import time

# Steps of a run that only its time ends.
NO_STEP_LIMIT = 2**31 - 1


class TimeBudget:
    """The time of a run: used up by all of its parts together, evaluations included.

    A run with a budget is no function of its seed: how many steps it takes, and at
    which rates, depends on how fast the machine is.

    Args:
        minutes: float, or None for a run that takes a number of steps.
        schedule: `schedules.WarmupLinearDecayOfTime`, or None without `minutes`.
        clock: function that returns seconds.
        agree: function that makes a number the same on all workers of a run.
    """

    def __init__(self, minutes=None, schedule=None, *, clock=None, agree=float):
        self.seconds = None if minutes is None else 60.0 * minutes
        self._schedule = schedule
        self._clock = lambda: agree((clock or _now)())
        self._used_before = 0.0
        self._started = None

    def start(self, used_seconds):
        """Starts counting; `used_seconds` is what earlier parts of the run took."""
        self._used_before = used_seconds
        self._started = self._clock()

    @property
    def used_seconds(self):
        """Seconds used so far, or None in a run of a number of steps."""
        if self.seconds is None or self._started is None:
            return None
        return self._used_before + self._clock() - self._started

    @property
    def is_spent(self):
        """Whether the time is up."""
        return self.seconds is not None and self.used_seconds >= self.seconds

    def set_rate(self):
        """Sets the rate of the steps that come next."""
        if self.seconds is not None:
            share = min(self.used_seconds / self.seconds, 1.0)
            self._schedule.share_done.assign(share)

    def amount(self, step, num_train_steps):
        """Returns what a progress bar shows: how much is done, of how much, a unit."""
        if self.seconds is None:
            return step, num_train_steps, "step"
        return min(self.used_seconds, self.seconds), self.seconds, "s"


def _now():
    return time.monotonic()
