"""Trains, evaluates and applies a model that finds answers in a text."""

import sys

from bert_tf import command_line
from bert_tf.question_answering import options


def work(options, progress):
    from bert_tf.question_answering import workflow

    return workflow.run(options, progress=progress)


def main(argv=None):
    return command_line.run("run_squad", options.RunSquadOptions, work, argv)


if __name__ == "__main__":
    sys.exit(main())
