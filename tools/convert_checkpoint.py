"""Converts a BERT checkpoint between formats and verifies the result."""

from bert_tf import command_line

main = command_line.tool_main("convert_checkpoint")

if __name__ == "__main__":
    raise SystemExit(main())
