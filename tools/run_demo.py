"""Runs every stage in turn, from raw text to a served answer."""

from bert_tf import command_line

main = command_line.tool_main("run_demo")

if __name__ == "__main__":
    raise SystemExit(main())
