"""Predicts the words behind [MASK], or scores whole texts."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.pretraining import options as pretraining_options


def work(
    options: pretraining_options.FillMaskOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.pretraining import fill_mask

    return fill_mask.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "fill_mask", pretraining_options.FillMaskOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
