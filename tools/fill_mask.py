"""Finds the likeliest words behind [MASK], or says how likely a text is."""

import sys

from bert_tf import command_line
from bert_tf.pretraining import options as pretraining_options


def work(options, progress):
    from bert_tf.pretraining import fill_mask

    return fill_mask.run(options, progress=progress)


def main(argv=None, typed=None):
    return command_line.run(
        "fill_mask", pretraining_options.FillMaskOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
