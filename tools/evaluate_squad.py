"""Scores predictions in the same way as SQuAD's official scripts."""

from bert_tf import command_line

main = command_line.tool_main("evaluate_squad")

if __name__ == "__main__":
    raise SystemExit(main())
