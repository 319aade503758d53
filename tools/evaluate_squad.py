"""Scores predictions in the same way as SQuAD's official scripts."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.question_answering import options as question_answering_options


def work(
    options: question_answering_options.EvaluateSquadOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.tasks.question_answering import scores as question_answering_scores

    return question_answering_scores.report(options)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "evaluate_squad",
        question_answering_options.EvaluateSquadOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
