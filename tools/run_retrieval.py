"""Trains, evaluates and applies a model that finds passages for queries."""

from bert_tf import command_line

main = command_line.tool_main("run_retrieval")

if __name__ == "__main__":
    raise SystemExit(main())
