"""Puts the scores of GLUE's tasks into one table, with the paper's average."""

import sys

from bert_tf import command_line
from bert_tf.tasks.classification import options as classification_options


def work(options, progress):
    from bert_tf.tasks.classification import glue_table

    return glue_table.run(options)


def main(argv=None, typed=None):
    return command_line.run(
        "evaluate_glue",
        classification_options.EvaluateGlueOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
