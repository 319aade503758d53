"""Ctrl-C and SIGTERM, delayed until the run can stop cleanly."""

import signal
import threading
from types import FrameType
from typing import Any
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
        """Raises KeyboardInterrupt(number of the signal, `saved`).

        The command line turns the number into the exit code, 130 or 143. If this
        process received no signal, another worker did; that counts as a SIGTERM.

        Args:
            saved: says what is saved, for the user. Without a full stop.
        """
        raise KeyboardInterrupt(self._received or signal.SIGTERM, saved)

    def _receive(self, number: int, unused_frame: FrameType | None) -> None:
        if self.pending and number == signal.SIGINT:
            raise KeyboardInterrupt(number)
        self._received = number
