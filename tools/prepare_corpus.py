"""Makes text with a sentence a line from raw text of any kind."""

import sys

from bert_tf import command_line
from bert_tf.preparation import options as preparation_options


def work(options, progress):
    from bert_tf.preparation import workflow as preparation_workflow

    return str(preparation_workflow.prepare_corpus(options, progress=progress))


def main(argv=None, typed=None):
    return command_line.run(
        "prepare_corpus",
        preparation_options.PrepareCorpusOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
