"""Trains, evaluates and applies a model that chooses one of several endings."""

from bert_tf import command_line

main = command_line.tool_main("run_swag")

if __name__ == "__main__":
    raise SystemExit(main())
