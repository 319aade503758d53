"""Trains, evaluates and applies a model that finds passages for queries."""

import sys

from bert_tf import command_line
from bert_tf.retrieval import options


def work(options, progress):
    from bert_tf.retrieval import workflow

    return workflow.run(options, progress=progress)


def main(argv=None):
    return command_line.run("run_retrieval", options.RunRetrievalOptions, work, argv)


if __name__ == "__main__":
    sys.exit(main())
