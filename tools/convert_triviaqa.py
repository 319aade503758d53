"""Converts the Wikipedia part of TriviaQA into SQuAD's format."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.question_answering import options as question_answering_options


def work(
    options: question_answering_options.ConvertTriviaqaOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.tasks.question_answering import triviaqa

    return triviaqa.convert(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "convert_triviaqa",
        question_answering_options.ConvertTriviaqaOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
