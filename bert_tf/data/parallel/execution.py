"""Where independent tasks are done: on this machine, or on a runner of Apache Beam.

A task's result is the files that it writes, complete or absent, and a task whose files
are there does nothing. So a worker that is killed, and whose task is done again, loses
and doubles nothing, and what is written is the same on every runner.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.data.parallel import process_pool
from bert_tf.options import option

LOCAL = "local"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerOptions(options_module.Options):
    """Where the work of a tool is done; the tool's own record has `num_workers`."""

    runner: str = option(
        LOCAL,
        help="local: --num_workers processes here. Else a runner of Apache Beam: "
        "DataflowRunner, FlinkRunner, SparkRunner, DaskRunner, FnApiRunner and so on; "
        "what is written is the same.",
    )
    pipeline_options: str = option(
        "",
        help="Options of Apache Beam in one text, such as "
        "'--direct_num_workers=4 --direct_running_mode=multi_processing'.",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.runner == LOCAL and self.pipeline_options:
            raise options_module.OptionError(
                "--pipeline_options: expected a --runner of Apache Beam that they are "
                "for, got the local one."
            )
        default = type(self).__dataclass_fields__["num_workers"].default
        if self.runner != LOCAL and self.num_workers != default:
            raise options_module.OptionError(
                f"--num_workers goes with --runner=local; {self.runner} is told by "
                "--pipeline_options how many workers it has."
            )


def run(
    work: Callable[[Any, Callable[[int], None]], None],
    tasks: Sequence[Any],
    execution: RunnerOptions,
    *,
    stage: str,
    num_bytes: int,
    progress: progress_module.Progress = progress_module.silent,
) -> None:
    """Does all tasks.

    Args:
        work: a module's function of a task and of a callback that is told how many
            more bytes of the task are done.
        tasks: what `work` takes; can be pickled.
        execution: where; with `num_workers`.
        stage: name for the progress.
        num_bytes: bytes that all tasks have together.
        progress: told how many MB are done; runners of Beam tell the end alone.

    Raises:
        ImportError: apache-beam is not installed.
        OSError: a worker was killed, or the runner failed.
        ValueError: whatever `work` raises first.
    """
    if execution.runner == LOCAL:
        process_pool.run(
            work,
            tasks,
            num_workers=execution.num_workers,
            stage=stage,
            num_bytes=num_bytes,
            progress=progress,
        )
        return
    from bert_tf.data.parallel import beam

    total = num_bytes / 1_000_000
    progress(stage, 0, total, unit="MB")
    beam.run(work, tasks, execution.runner, execution.pipeline_options)
    progress(stage, total, total, unit="MB")
