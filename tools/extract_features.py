"""Writes the vectors of the word pieces of every line, or one vector a line."""

import sys

from bert_tf import command_line
from bert_tf.feature_extraction import options


def work(options, progress):
    from bert_tf.feature_extraction import workflow

    return workflow.run(options, progress=progress)


def main(argv=None):
    return command_line.run(
        "extract_features", options.ExtractFeaturesOptions, work, argv
    )


if __name__ == "__main__":
    sys.exit(main())
