"""Runs independent tasks in this process, in local processes, or on a Beam runner.

The result of a task is the files that it writes. Each file appears complete or not at
all, and a task whose files exist does nothing. So a task may run on any machine, in any
order, and more than once: after a crash nothing is lost or duplicated, and every runner
writes the same files.

A tool keeps the files of finished tasks in a folder until all tasks are finished. The
folder has a fingerprint of the command, so that the same command resumes a killed run.
"""

import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import process
from typing import Any
from typing import ClassVar

from bert_tf import files
from bert_tf import machine
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.options import option

LOCAL = "local"
_MEGABYTE = 1_000_000
_SECONDS_BETWEEN_PROGRESS = 0.2
# Packages that start threads, which would not survive a fork.
_THREADED = frozenset({"jax", "tensorflow", "torch"})
# In a worker process: the counter of finished bytes that all workers share.
_SHARED: list = []
_DASK = "DaskRunner"
# Runners whose short names Beam does not recognize.
_PATHS = {_DASK: "apache_beam.runners.dask.dask_runner.DaskRunner"}
# The line of a runner's failure message that names the exception of a task.
_RAISED = re.compile(
    r"^(?:\w+\.)*(ValueError|ImportError|\w*Error): (.*)$", re.MULTILINE
)
_WHILE = re.compile(r" \[while running .*")
_FINGERPRINT = "fingerprint"  # The file that says which command the work belongs to.
# What tasks may write into the folder: files with the number of a task.
_WORK = re.compile(r"\d{6,}\.(?:json|part|txt)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerOptions(options_module.Options):
    """Where a tool's tasks run. The tool's own record declares `num_workers`."""

    flag_group: ClassVar[str] = "devices"

    runner: str = option(
        LOCAL,
        help="local: --num_workers processes on this machine. Otherwise the name of an "
        "Apache Beam runner: DataflowRunner, FlinkRunner, SparkRunner, DaskRunner, "
        "FnApiRunner and so on. The output does not depend on it.",
    )
    pipeline_options: str = option(
        "",
        help="Options for the Apache Beam runner as one string, for example "
        "'--direct_num_workers=4 --direct_running_mode=multi_processing'.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.runner == LOCAL and self.pipeline_options:
            raise options_module.OptionError(
                "--pipeline_options needs --runner with the name of an Apache Beam "
                "runner."
            )
        if self.runner != LOCAL and not self.is_default("num_workers"):
            raise options_module.OptionError(
                f"--num_workers needs --runner=local; set the number of workers of "
                f"{self.runner} in --pipeline_options."
            )


def run(
    work: Callable[[Any, Callable[[int], None]], None],
    tasks: Sequence[Any],
    execution: Any,
    *,
    stage: str,
    num_bytes: int,
    on_progress: Callable[[], None] = lambda: None,
) -> None:
    """Runs all tasks.

    Args:
        work: a module-level function that takes a task and a callback. It calls the
            callback with the number of further bytes of the task that it has finished.
        tasks: picklable arguments of `work`.
        execution: where the tasks run: `RunnerOptions` with `num_workers`. With 1, the
            tasks run in this process. None: one per core, at most one per MB.
        stage: name of the progress bar.
        num_bytes: total bytes of all tasks.
        on_progress: called in this process after each progress report.

    Raises:
        ImportError: apache-beam is not installed.
        OSError: a worker was killed, or the runner failed.
        Exception: the first one that `work` raises; with Beam, a ValueError.
    """
    done = 0

    def report():
        progress_module.report(
            stage, done / _MEGABYTE, num_bytes / _MEGABYTE, unit="MB"
        )
        on_progress()

    def on_done(now):
        nonlocal done
        # A progress bar restarts if its end is reported twice.
        if (now := min(now, num_bytes)) > done:
            done = now
            report()

    # Starting a process takes about as long as sampling one megabyte.
    useful = max(1, min(machine.num_cores(), num_bytes // _MEGABYTE))
    num_workers = min(execution.num_workers or useful, len(tasks))
    if execution.runner != LOCAL:
        report()
        _run_on_beam(work, tasks, execution.runner, execution.pipeline_options)
    elif num_workers <= 1:
        report()
        for task in tasks:
            work(task, lambda more: on_done(done + more))
    else:
        _run_in_processes(work, tasks, num_workers, report, on_done)
    on_done(num_bytes)


def _run_in_processes(work, tasks, num_workers, on_start, on_done):
    context: Any = multiprocessing.get_context(_start_method())
    counter = context.Value("q", 0)
    pool = process.ProcessPoolExecutor(
        num_workers, mp_context=context, initializer=_start, initargs=(counter,)
    )
    try:
        with _interrupts_held_back():  # The pool starts processes here.
            pending = {pool.submit(_do, work, task) for task in tasks}
        # Not earlier: a progress bar may start a thread, after which forking is unsafe.
        on_start()
        while pending:
            done, pending = concurrent.futures.wait(
                pending,
                _SECONDS_BETWEEN_PROGRESS,
                concurrent.futures.FIRST_EXCEPTION,
            )
            for future in done:
                future.result()
            on_done(counter.value)
    except process.BrokenProcessPool:
        raise OSError(
            "A worker process was killed, possibly because memory ran out. Reduce "
            "--num_workers. The same command resumes the run."
        ) from None
    finally:
        # Stop an interrupted run soon; tasks remove their unfinished files.
        for worker in list((pool._processes or {}).values()) if pending else ():
            worker.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _start_method():
    """Returns "fork" where it is safe; it saves a quarter of a second per worker."""
    has_threads = threading.active_count() > 1 or not _THREADED.isdisjoint(sys.modules)
    return "spawn" if has_threads or sys.platform != "linux" else "fork"


def _start(counter):
    """Makes a worker ignore Ctrl-C, and end when its parent ends for any reason.

    Ctrl-C reaches the whole process group, so the parent gets it too and decides how
    to stop its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_after_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, _leave)
    _SHARED[:] = [counter]


def _do(work, task):
    def on_bytes(more):
        with _SHARED[0].get_lock():
            _SHARED[0].value += more

    try:
        work(task, on_bytes)
        return
    except SystemExit:  # From `_leave`. The pool would treat it as a result.
        pass
    # Not in the handler above: its exception keeps the frames of `work` alive, and
    # with them context managers that the signal caught before they were entered.
    os._exit(1)


def _leave(signal_number, frame):
    # The pool sends the signal again when it notices that a worker has ended. It must
    # not interrupt the context managers that are now removing unfinished files.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1)


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
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


def _exit_after_parent():
    parent = multiprocessing.parent_process()
    assert parent is not None  # This is a worker process.
    parent.join()
    os._exit(1)


def _run_on_beam(
    work: Callable[[Any, Callable[[int], None]], None],
    tasks: Sequence[Any],
    runner: str,
    pipeline_options: str,
) -> None:
    """Runs every task at least once; a runner may run a task twice at the same time.

    The extra `beam` is not part of `dev`: Beam 2.77 needs protobuf < 7, while
    `requirements/python-3.11.txt` has protobuf 7. TensorFlow 2.21 accepts 6.33, so
    `make test-beam` runs these tests in their own environment. DirectRunner,
    FnApiRunner and DaskRunner were run; Dataflow, Flink and Spark were not. FnApiRunner
    does not notice a lost worker and waits forever; DaskRunner repeats the task.
    """
    beam = machine.package("apache_beam", extra="beam", needed_for="--runner")
    from apache_beam.options import pipeline_options as beam_options

    arguments = shlex.split(pipeline_options)
    if runner == _DASK and not any("partition" in text for text in arguments):
        arguments.append("--dask_partition_size=1")  # One task is a large work item.
    # Explicit arguments, or Beam would parse the tool's own flags from sys.argv.
    options = beam_options.PipelineOptions(
        [f"--runner={_PATHS.get(runner, runner)}", *arguments]
    )
    try:
        pipeline = beam.Pipeline(options=options)
    except (ValueError, ImportError, AttributeError) as error:
        raise ValueError(f"--runner={runner}: {error}") from None
    waiting = pipeline | "tasks" >> beam.Create(list(tasks))
    if runner != _DASK:
        # Without it a runner may fuse the steps and run all tasks on one worker. On
        # Dask it would do the opposite and put all tasks into one partition.
        waiting = waiting | "spread" >> beam.Reshuffle()
    _ = waiting | "do" >> beam.Map(_do_on_beam, work)
    result = None
    try:
        result = pipeline.run()
        state = result.wait_until_finish()
    except Exception as error:
        raise _task_error(error, runner) from None
    finally:
        client = getattr(result, "client", None)
        if client is not None:  # Of the cluster that Dask's runner has created.
            client.close()
    if state not in (None, "DONE"):
        raise OSError(f"--runner={runner}: the pipeline ended in the state {state}.")


def _do_on_beam(task, work):
    work(task, _ignore_progress)


def _ignore_progress(num_bytes):
    """Progress of a remote worker is not reported."""


def _task_error(error, runner):
    """Returns the exception that a task raised, recovered from the runner's message."""
    raised = _RAISED.findall(str(error))
    if isinstance(error, ValueError | OSError | ImportError) and not raised:
        return error
    kind, message = raised[-1] if raised else ("", str(error).strip() or repr(error))
    message = _WHILE.sub("", message.splitlines()[0])
    kinds = {"ValueError": ValueError, "ImportError": ImportError}
    if kind in kinds:
        return kinds[kind](message)
    return OSError(
        f"--runner={runner}: the pipeline failed ({message}). The same command resumes "
        "the run."
    )


def is_work_of(fingerprint: str, folder: str) -> bool:
    """Returns whether the folder holds the finished work of the same command."""
    path = os.path.join(folder, _FINGERPRINT)
    if not files.exists(path):
        return False
    with files.open_file(path, "rb") as file:
        return file.read() == fingerprint.encode()


def start_work(fingerprint: str, folder: str) -> None:
    """Creates the folder for the finished work of a command; removes other work.

    Raises:
        OSError: a file cannot be read, written or removed.
    """
    if is_work_of(fingerprint, folder):
        return
    remove_work(folder)
    files.make_folders(folder)
    with files.complete_or_absent(os.path.join(folder, _FINGERPRINT)) as file:
        file.write(fingerprint)


def remove_work(folder: str) -> None:
    """Removes finished work, and its folder if it contains nothing else.

    Raises:
        OSError: a file cannot be removed.
    """
    if not files.is_folder(folder):
        return
    # The fingerprint first: work without it is never used again.
    names = files.list_folder(folder)
    for name in sorted(names, key=lambda name: files.final_name(name) != _FINGERPRINT):
        final_name = files.final_name(name)
        if final_name == _FINGERPRINT or _WORK.fullmatch(final_name):
            files.remove(os.path.join(folder, name))
    if not files.is_remote(folder):
        with contextlib.suppress(OSError):  # It contains other files.
            os.rmdir(folder)
