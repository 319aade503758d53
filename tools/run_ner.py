"""Trains, evaluates and applies a model that tags words."""

from bert_tf import command_line

main = command_line.tool_main("run_ner")

if __name__ == "__main__":
    raise SystemExit(main())
