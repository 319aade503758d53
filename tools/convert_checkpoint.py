"""Converts a BERT checkpoint between formats and verifies the result."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "convert_checkpoint")

if __name__ == "__main__":
    raise SystemExit(main())
