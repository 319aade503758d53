"""Plots the losses and scores of training runs."""

from bert_tf import command_line

main = command_line.tool_main("plot_run")

if __name__ == "__main__":
    raise SystemExit(main())
