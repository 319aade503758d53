"""Runs independent tasks on this machine or on an Apache Beam runner.

The result of a task is the files that it writes. Each file appears complete or not at
all, and a task whose files exist does nothing. So a task may run on any machine, in any
order, and more than once: after a crash nothing is lost or duplicated, and every runner
writes the same files.

`process_pool` runs tasks in local processes and `beam` on a Beam runner.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.data.parallel import process_pool
from bert_tf.options import option

LOCAL = "local"


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
) -> None:
    """Runs all tasks.

    Args:
        work: a module-level function that takes a task and a callback. It calls the
            callback with the number of further bytes of the task that it has finished.
        tasks: picklable arguments of `work`.
        execution: where the tasks run: `RunnerOptions` with `num_workers`.
        stage: name of the progress bar.
        num_bytes: total bytes of all tasks.

    Raises:
        ImportError: apache-beam is not installed.
        OSError: a worker was killed, or the runner failed.
        ValueError: the first one that `work` raises.
    """
    if execution.runner == LOCAL:
        process_pool.run(
            work,
            tasks,
            num_workers=execution.num_workers or 1,
            stage=stage,
            num_bytes=num_bytes,
        )
        return
    from bert_tf.data.parallel import beam

    total = num_bytes / 1_000_000
    progress_module.report(stage, 0, total, unit="MB")
    beam.run(work, tasks, execution.runner, execution.pipeline_options)
    progress_module.report(stage, total, total, unit="MB")
