"""Trains, evaluates and applies a model that finds answers in a text."""

from bert_tf import command_line

main = command_line.tool_main("run_squad")

if __name__ == "__main__":
    raise SystemExit(main())
