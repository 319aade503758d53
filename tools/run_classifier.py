"""Trains, evaluates and applies a classifier of texts or pairs of texts."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.classification import options as classification_options


def work(
    options: classification_options.RunClassifierOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.tasks.classification import workflow as classification_workflow

    return classification_workflow.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "run_classifier",
        classification_options.RunClassifierOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
