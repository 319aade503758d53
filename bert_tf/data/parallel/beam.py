"""Runs independent tasks on an Apache Beam runner; no other module imports Beam.

The extra `beam` is not part of `dev`: Beam 2.77 needs protobuf < 7, while
`requirements/python-3.11.txt` has protobuf 7. TensorFlow 2.21 accepts 6.33, so
`make test-beam` runs these tests in their own environment. DirectRunner,
FnApiRunner and DaskRunner were run; Dataflow, Flink and Spark were not. FnApiRunner
does not notice a lost worker and waits forever; DaskRunner repeats the task.
"""

import re
import shlex
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

_DASK = "DaskRunner"
# Runners whose short names Beam does not recognize.
_PATHS = {_DASK: "apache_beam.runners.dask.dask_runner.DaskRunner"}
# The line of a runner's failure message that names the exception of a task.
_RAISED = re.compile(
    r"^(?:\w+\.)*(ValueError|ImportError|\w*Error): (.*)$", re.MULTILINE
)
_WHILE = re.compile(r" \[while running .*")


def run(
    work: Callable[[Any, Callable[[int], None]], None],
    tasks: Sequence[Any],
    runner: str,
    pipeline_options: str,
) -> None:
    """Runs every task at least once; a runner may run a task twice at the same time.

    Args:
        work: a module-level function that takes a task and a progress callback.
        tasks: picklable arguments of `work`.
        runner: name of the Beam runner.
        pipeline_options: the runner's options, written as on a command line.

    Raises:
        ImportError: apache-beam is not installed.
        OSError: the runner failed.
        ValueError: the runner does not exist, or a task raised the error.
    """
    beam, beam_options = _beam()
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
    _ = waiting | "do" >> beam.Map(_do, work)
    try:
        result = pipeline.run()
        state = result.wait_until_finish()
    except Exception as error:
        raise _task_error(error, runner) from None
    finally:
        _close(locals().get("result"))
    if state not in (None, "DONE"):
        raise OSError(f"--runner={runner}: the pipeline ended in the state {state}.")


def _do(task, work):
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


def _close(result):
    """Closes the cluster that Dask's runner has created."""
    client = getattr(result, "client", None)
    if client is not None:
        client.close()


def _beam():
    try:
        import apache_beam
        from apache_beam.options import pipeline_options
    except ModuleNotFoundError:
        raise ImportError(
            "--runner needs apache-beam, which is not installed: "
            "pip install 'bert_tf[beam]'."
        ) from None
    return apache_beam, pipeline_options
