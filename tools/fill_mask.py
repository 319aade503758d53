"""Prints the likeliest words behind the [MASK]s of a text."""

import sys

from bert_tf import command_line
from bert_tf import files
from bert_tf.pretraining import run_options


def work(options, progress):
    from bert_tf.pretraining import predictions

    texts = [options.text]
    if options.text == "-":
        texts = [line.strip() for line in files.read_stdin_lines() if line.strip()]
    return predictions.fill_mask(options, texts, progress=progress)


def main(argv=None):
    return command_line.run("fill_mask", run_options.FillMaskOptions, work, argv)


if __name__ == "__main__":
    sys.exit(main())
