"""Trains, evaluates and applies a model that chooses one of several endings."""

import sys

from bert_tf import command_line
from bert_tf.multiple_choice import options


def work(options, progress):
    from bert_tf.multiple_choice import workflow

    return workflow.run(options, progress=progress)


def main(argv=None):
    return command_line.run("run_swag", options.RunSwagOptions, work, argv)


if __name__ == "__main__":
    sys.exit(main())
