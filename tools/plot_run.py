"""Plots the losses and scores of training runs."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "plot_run")

if __name__ == "__main__":
    raise SystemExit(main())
