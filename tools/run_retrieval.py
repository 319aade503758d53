"""Trains, evaluates and applies a model that finds passages for queries."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.retrieval import options as retrieval_options


def work(
    options: retrieval_options.RunRetrievalOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.tasks.retrieval import workflow as retrieval_workflow

    return retrieval_workflow.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "run_retrieval", retrieval_options.RunRetrievalOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
