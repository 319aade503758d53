"""Trains, evaluates and applies a classifier of texts or pairs of texts."""

from bert_tf import command_line

main = command_line.tool_main("run_classifier")

if __name__ == "__main__":
    raise SystemExit(main())
