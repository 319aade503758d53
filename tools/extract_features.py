"""Writes the vectors of the word pieces of every line, or one vector a line."""

import sys

from bert_tf import command_line
from bert_tf.tasks.feature_extraction import options as feature_extraction_options


def work(options, progress):
    from bert_tf.tasks.feature_extraction import workflow as feature_extraction_workflow

    return feature_extraction_workflow.run(options, progress=progress)


def main(argv=None, typed=None):
    return command_line.run(
        "extract_features",
        feature_extraction_options.ExtractFeaturesOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
