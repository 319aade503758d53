"""Trains, evaluates and applies a classifier of sentences or pairs."""

import sys

from bert_tf import command_line
from bert_tf.tasks.classification import options as classification_options


def work(options, progress):
    from bert_tf.tasks.classification import workflow as classification_workflow

    return classification_workflow.run(options, progress=progress)


def main(argv=None, typed=None):
    return command_line.run(
        "run_classifier",
        classification_options.RunClassifierOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
