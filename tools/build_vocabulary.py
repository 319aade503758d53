"""Learns a WordPiece vocabulary from text, or adds words to one."""

from bert_tf import command_line

main = command_line.tool_main("build_vocabulary")

if __name__ == "__main__":
    raise SystemExit(main())
