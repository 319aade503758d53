"""Turns raw text of any kind into one sentence per line."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "prepare_corpus")

if __name__ == "__main__":
    raise SystemExit(main())
