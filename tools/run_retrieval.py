"""Trains, evaluates and applies a model that finds passages for queries."""

import sys

from bert_tf import command_line
from bert_tf.tasks.retrieval import options as retrieval_options


def work(options, progress):
    from bert_tf.tasks.retrieval import workflow as retrieval_workflow

    return retrieval_workflow.run(options, progress=progress)


def main(argv=None, typed=None):
    return command_line.run(
        "run_retrieval", retrieval_options.RunRetrievalOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
