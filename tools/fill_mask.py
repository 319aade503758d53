"""Predicts the words behind [MASK], or scores whole texts."""

from bert_tf import command_line

main = command_line.tool_main("fill_mask")

if __name__ == "__main__":
    raise SystemExit(main())
