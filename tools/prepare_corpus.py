"""Turns raw text of any kind into one sentence per line."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.preparation import options as preparation_options


def work(
    options: preparation_options.PrepareCorpusOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.preparation import workflow as preparation_workflow

    return str(preparation_workflow.prepare_corpus(options, progress=progress))


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "prepare_corpus",
        preparation_options.PrepareCorpusOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
