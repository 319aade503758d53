"""Turns sentences into TFRecord files of masked pretraining examples."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.pretraining_data import options as pretraining_data_options


def work(
    options: pretraining_data_options.CreatePretrainingDataOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.pretraining_data import workflow as pretraining_data_workflow

    return str(pretraining_data_workflow.create_data(options, progress=progress))


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "create_pretraining_data",
        pretraining_data_options.CreatePretrainingDataOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
