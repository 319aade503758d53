"""Collects GLUE scores in one table, with the paper's average."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.classification import options as classification_options


def work(
    options: classification_options.EvaluateGlueOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.tasks.classification import glue_table

    return glue_table.run(options)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "evaluate_glue",
        classification_options.EvaluateGlueOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
