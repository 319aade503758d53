"""Independent tasks, done here or in several processes.

A task's result is the files that it writes, complete or absent, so that it does not
matter where, in which order, or how often a task is done.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from collections.abc import Sequence
from concurrent.futures import process
from typing import Any

from bert_tf import progress as progress_module

_MEGABYTE = 1_000_000
_SECONDS_BETWEEN_PROGRESS = 0.2
# Of a worker process: the counter of bytes that it shares with the others.
_SHARED: list = []


def run(
    work: Callable[[Any, Callable[[int], None]], None],
    tasks: Sequence[Any],
    *,
    num_workers: int,
    stage: str,
    num_bytes: int,
    progress: progress_module.Progress = progress_module.silent,
) -> None:
    """Does all tasks.

    Args:
        work: a module's function of a task and of a callback that is told how many
            more bytes of the task are done.
        tasks: what `work` takes; can be pickled.
        num_workers: processes; 1: this one.
        stage: name for the progress.
        num_bytes: bytes that all tasks have together.
        progress: told how many MB are done.

    Raises:
        OSError: a worker was killed.
        Exception: whatever `work` raises first.
    """
    done = 0

    def tell(now):
        nonlocal done
        # Whoever draws a bar takes it for a new one when the end is told twice.
        if (now := min(now, num_bytes)) > done:
            done = now
            progress(stage, done / _MEGABYTE, num_bytes / _MEGABYTE, unit="MB")

    progress(stage, 0, num_bytes / _MEGABYTE, unit="MB")
    num_workers = min(num_workers, len(tasks))
    if num_workers <= 1:
        for task in tasks:
            work(task, lambda more: tell(done + more))
    else:
        _run_in_processes(work, tasks, num_workers, tell)
    tell(num_bytes)


def _run_in_processes(work, tasks, num_workers, tell):
    # Not fork: a caller's TensorFlow has threads, which do not survive it.
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    pool = process.ProcessPoolExecutor(
        num_workers, mp_context=context, initializer=_start, initargs=(counter,)
    )
    try:
        with _interrupts_held_back():  # Here the pool starts its processes.
            pending = {pool.submit(_do, work, task) for task in tasks}
        while pending:
            done, pending = concurrent.futures.wait(
                pending,
                _SECONDS_BETWEEN_PROGRESS,
                concurrent.futures.FIRST_EXCEPTION,
            )
            for future in done:
                future.result()
            tell(counter.value)
    except process.BrokenProcessPool:
        raise OSError(
            "A worker process was killed; memory may have run out. Give fewer "
            "--num_workers. The same command goes on with what is done."
        ) from None
    finally:
        # An interrupted run shall end soon; a task leaves no half files behind.
        for worker in list((pool._processes or {}).values()) if pending else ():
            worker.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _start(counter):
    # The main process is interrupted too, and then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _SHARED[:] = [counter]


def _do(work, task):
    def on_bytes(more):
        with _SHARED[0].get_lock():
            _SHARED[0].value += more

    try:
        work(task, on_bytes)
    except SystemExit:  # Of `_leave`. The pool would take it for a result, and go on.
        os._exit(1)


def _leave(signal_number, frame):
    raise SystemExit(1)  # Files half written are removed on the way out.


def _end_with_parent():
    """Ends this process when the main one is gone, however it went."""
    multiprocessing.parent_process().join()
    os._exit(1)


@contextlib.contextmanager
def _interrupts_held_back():
    """Lets Ctrl-C reach this thread after the block, and no process started in it.

    A new process would else print a traceback before it can look away.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows.
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
