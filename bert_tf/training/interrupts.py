"""Ctrl-C at a moment that suits the run."""

import signal
import threading


class Interrupts:
    """Holds the first Ctrl-C back until the run asks for it; a second one acts at once.

    So a step is logged, evaluated and saved whole before the run ends. Outside of the
    main thread, where Python delivers no signals, it does nothing.

    Example:
        with Interrupts() as interrupts:
            for step in steps:
                step()
                if interrupts.pending:
                    save()
                    raise KeyboardInterrupt
    """

    def __init__(self):
        self.pending = False
        self._previous = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._receive)
        return self

    def __exit__(self, *unused_error):
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _receive(self, *unused_signal):
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True
