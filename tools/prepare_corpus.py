"""Turns raw text of any kind into one sentence per line."""

from bert_tf import command_line

main = command_line.tool_main("prepare_corpus")

if __name__ == "__main__":
    raise SystemExit(main())
