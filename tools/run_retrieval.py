"""Trains, evaluates and applies a model that finds passages for queries."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "run_retrieval")

if __name__ == "__main__":
    raise SystemExit(main())
