"""Converts a BERT checkpoint from any format to another one, and proves it."""

import sys

from bert_tf import command_line
from bert_tf.checkpoints.conversion import options as conversion_options


def work(options, progress):
    from bert_tf.checkpoints.conversion import workflow as conversion_workflow

    return conversion_workflow.run(options, progress=progress)


def main(argv=None, typed=None):
    return command_line.run(
        "convert_checkpoint",
        conversion_options.ConvertCheckpointOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
