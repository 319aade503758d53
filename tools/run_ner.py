"""Trains, evaluates and applies a model that tags words."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "run_ner")

if __name__ == "__main__":
    raise SystemExit(main())
