"""Learns a WordPiece vocabulary from text, or adds words to one."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tokenization import options as tokenization_options


def work(
    options: tokenization_options.BuildVocabularyOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.tokenization import workflow as tokenization_workflow

    return str(tokenization_workflow.build_vocabulary(options, progress=progress))


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "build_vocabulary",
        tokenization_options.BuildVocabularyOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
