"""Trains, evaluates and applies a model that tags words."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.token_classification import options as token_classification_options


def work(
    options: token_classification_options.RunNerOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.tasks.token_classification import (
        workflow as token_classification_workflow,
    )

    return token_classification_workflow.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "run_ner", token_classification_options.RunNerOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
