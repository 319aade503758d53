"""Makes TFRecord files of masked sentence pairs from text."""

import sys

from bert_tf import command_line
from bert_tf.pretraining_data import options as pretraining_data_options


def work(options, progress):
    from bert_tf.pretraining_data import workflow as pretraining_data_workflow

    return str(pretraining_data_workflow.create_data(options, progress=progress))


def main(argv=None, typed=None):
    return command_line.run(
        "create_pretraining_data",
        pretraining_data_options.CreatePretrainingDataOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
