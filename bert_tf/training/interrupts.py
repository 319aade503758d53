"""Ctrl-C and SIGTERM at a moment that suits the run."""

import signal
import threading

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Holds the first Ctrl-C or SIGTERM back until the run asks for it.

    So a step is logged, evaluated and saved whole before the run ends. A second Ctrl-C
    acts at once; another SIGTERM changes nothing, since those who end preemptible
    machines may send several. Outside of the main thread, where Python delivers no
    signals, it does nothing.

    Example:
        with Interrupts() as interrupts:
            for step in steps:
                step()
                if interrupts.pending:
                    save()
                    interrupts.act()
    """

    def __init__(self):
        self._received = None
        self._previous = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *unused_error):
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    @property
    def pending(self):
        """Whether a signal came."""
        return self._received is not None

    def act(self):
        """Raises KeyboardInterrupt, whose argument is the number of the signal.

        Where none came, another worker's run was told to end: that is a SIGTERM here.
        """
        raise KeyboardInterrupt(self._received or signal.SIGTERM)

    def _receive(self, number, unused_frame):
        if self.pending and number == signal.SIGINT:
            raise KeyboardInterrupt(number)
        self._received = number
