"""Draws the curves of one run or several from their metrics.jsonl."""

import sys

from bert_tf import command_line
from bert_tf.training import curve_options


def work(options, progress):
    from bert_tf.training import curves

    return curves.plot_runs(options)


def main(argv=None, typed=None):
    return command_line.run(
        "plot_run", curve_options.PlotRunOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
