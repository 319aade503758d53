"""Plots the losses and scores of training runs."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.training import options as training_options


def work(
    options: training_options.PlotRunOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.fine_tuning import run_report
    from bert_tf.training import curves

    return curves.plot_runs(options, run_report.write)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "plot_run", training_options.PlotRunOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
