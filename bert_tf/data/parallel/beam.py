"""Independent tasks as a pipeline of Apache Beam; the only module that knows it."""

import re
import shlex
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

# What Beam does not know by its short name.
_DASK = "DaskRunner"
_PATHS = {_DASK: "apache_beam.runners.dask.dask_runner.DaskRunner"}
# How the lines of a failure name what a task raised.
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
    """Does all tasks; every one of them at least once, perhaps at the same time.

    Args:
        work: a module's function of a task and of a callback for bytes done.
        tasks: what `work` takes; can be pickled.
        runner: name of a runner of Beam.
        pipeline_options: its options, as on a command line.

    Raises:
        ImportError: apache-beam is not installed.
        OSError: the runner failed.
        ValueError: there is no such runner, or a task raised it.
    """
    beam, beam_options = _beam()
    arguments = shlex.split(pipeline_options)
    if runner == _DASK and not any("partition" in text for text in arguments):
        arguments.append("--dask_partition_size=1")  # A task is work enough.
    # Without the arguments of the tool, which Beam would read from sys.argv.
    options = beam_options.PipelineOptions(
        [f"--runner={_PATHS.get(runner, runner)}", *arguments]
    )
    try:
        pipeline = beam.Pipeline(options=options)
    except (ValueError, ImportError, AttributeError) as error:
        raise ValueError(f"--runner={runner}: {error}") from None
    waiting = pipeline | "tasks" >> beam.Create(list(tasks))
    if runner != _DASK:
        # Else a runner may do all tasks where they were made. Dask divides them so.
        waiting = waiting | "spread" >> beam.Reshuffle()
    _ = waiting | "do" >> beam.Map(_do, work)
    try:
        result = pipeline.run()
        state = result.wait_until_finish()
    except Exception as error:
        raise _clear(error, runner) from None
    finally:
        _close(locals().get("result"))
    if state not in (None, "DONE"):
        raise OSError(f"--runner={runner}: the pipeline ended as {state}.")


def check_installed() -> None:
    """Raises ImportError, with what to install, where there is no apache-beam."""
    _beam()


def _do(task, work):
    work(task, _nobody)


def _nobody(num_bytes):
    """Nobody is told what is done on another machine."""


def _clear(error, runner):
    """Returns what a task raised, as far as the runner's message tells it."""
    raised = _RAISED.findall(str(error))
    if isinstance(error, ValueError | OSError | ImportError) and not raised:
        return error
    kind, message = raised[-1] if raised else ("", str(error).strip() or repr(error))
    message = _WHILE.sub("", message.splitlines()[0])
    kinds = {"ValueError": ValueError, "ImportError": ImportError}
    if kind in kinds:
        return kinds[kind](message)
    return OSError(
        f"--runner={runner}: the pipeline failed ({message}); the same command goes on "
        "with what is done."
    )


def _close(result):
    """Ends the cluster that Dask's runner has made for itself."""
    client = getattr(result, "client", None)
    if client is not None:
        client.close()


def _beam():
    try:
        import apache_beam
        from apache_beam.options import pipeline_options
    except ModuleNotFoundError:
        raise ImportError(
            "--runner needs apache-beam, which is not installed; "
            "pip install 'bert_tf[beam]'."
        ) from None
    return apache_beam, pipeline_options
