"""Trains, evaluates and applies a model that finds answers in a text."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.question_answering import options as question_answering_options


def work(
    options: question_answering_options.RunSquadOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.tasks.question_answering import workflow as question_answering_workflow

    return question_answering_workflow.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "run_squad", question_answering_options.RunSquadOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
