"""How fast a run is, and how many steps it takes in one call from the host."""

import statistics

# A call is to last about so long: the progress bar moves, Ctrl-C works.
SECONDS_PER_CALL = 1.0


class Pace:
    """Measures calls of some steps each, and says how long the next one may be.

    Args:
        batch_size: int, examples a step.

    Attributes:
        num_steps: int, steps that the next call may take.
    """

    def __init__(self, batch_size):
        self._batch_size = batch_size
        self._speeds = []
        self.num_steps = 1

    def took(self, num_steps, seconds):
        """Takes a call in; returns its examples per second."""
        if seconds < SECONDS_PER_CALL / 2:
            self.num_steps = 2 * num_steps
        elif seconds > 2 * SECONDS_PER_CALL:
            self.num_steps = max(1, self.num_steps // 2)
        speed = num_steps * self._batch_size / seconds
        self._speeds += [speed] * num_steps
        return speed

    @property
    def median_speed(self):
        """Examples per second of the median step, or None before the first."""
        return statistics.median(self._speeds) if self._speeds else None
