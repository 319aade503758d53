"""Converts a BERT checkpoint from any format to another one, and proves it."""

import sys

from bert_tf import command_line
from bert_tf.checkpoints import conversion_options


def work(options, progress):
    from bert_tf.checkpoints import conversion

    return conversion.run(options, progress=progress)


def main(argv=None):
    return command_line.run(
        "convert_checkpoint", conversion_options.ConvertCheckpointOptions, work, argv
    )


if __name__ == "__main__":
    sys.exit(main())
