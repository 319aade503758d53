"""Trains, evaluates and applies a classifier of texts or pairs of texts."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "run_classifier")

if __name__ == "__main__":
    raise SystemExit(main())
