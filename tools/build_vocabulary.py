"""Learns a WordPiece vocabulary from text, or adds words to one."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "build_vocabulary")

if __name__ == "__main__":
    raise SystemExit(main())
