"""Checks the data of a task before training."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.data_checks import options as data_checks_options


def work(
    options: data_checks_options.CheckDataOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.data_checks import workflow as data_checks_workflow

    return data_checks_workflow.run(options, progress=progress).report()


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "check_data", data_checks_options.CheckDataOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
