"""Pretrains BERT on the files of create_pretraining_data, and evaluates it."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.pretraining import options as pretraining_options


def work(
    options: pretraining_options.RunPretrainingOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.pretraining import workflow as pretraining_workflow

    return pretraining_workflow.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "run_pretraining",
        pretraining_options.RunPretrainingOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
