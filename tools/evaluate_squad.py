"""Scores predictions as the official scripts of SQuAD 1.1 and 2.0 do."""

import sys

from bert_tf import command_line
from bert_tf.tasks.question_answering import options as question_answering_options


def work(options, progress):
    from bert_tf.tasks.question_answering import scores as question_answering_scores

    return question_answering_scores.report(options)


def main(argv=None, typed=None):
    return command_line.run(
        "evaluate_squad",
        question_answering_options.EvaluateSquadOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
