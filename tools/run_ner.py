"""Trains, evaluates and applies a model that gives every word a tag."""

import sys

from bert_tf import command_line
from bert_tf.token_classification import options


def work(options, progress):
    from bert_tf.token_classification import workflow

    return workflow.run(options, progress=progress)


def main(argv=None):
    return command_line.run("run_ner", options.RunNerOptions, work, argv)


if __name__ == "__main__":
    sys.exit(main())
