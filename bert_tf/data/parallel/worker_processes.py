"""Shared by all worker processes: handling of signals, shutdown, memory."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Delays Ctrl-C until the end of the block.

    Start worker processes inside the block: they inherit the signal mask. Otherwise
    Ctrl-C could reach a new process before it ignores the signal, and the process
    would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows.
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow_parent() -> None:
    """Makes a worker ignore Ctrl-C, and end when its parent ends for any reason.

    Ctrl-C reaches the whole process group, so the parent gets it too and decides how
    to stop its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_after_parent, daemon=True).start()


def _exit_after_parent():
    parent = multiprocessing.parent_process()
    assert parent is not None  # Only worker processes call `follow_parent`.
    parent.join()
    os._exit(1)


def peak_memory_mb() -> float:
    """Returns this process's peak memory in MB, or 0 where it is unknown."""
    try:
        # Not getrusage alone: after a fork it includes what the parent held.
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1000
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
