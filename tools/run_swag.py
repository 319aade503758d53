"""Trains, evaluates and applies a model that chooses one of several endings."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.multiple_choice import options as multiple_choice_options


def work(
    options: multiple_choice_options.RunSwagOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.fine_tuning import run as fine_tuning_run

    return fine_tuning_run.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "run_swag", multiple_choice_options.RunSwagOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
