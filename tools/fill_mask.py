"""Predicts the words behind [MASK], or scores whole texts."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "fill_mask")

if __name__ == "__main__":
    raise SystemExit(main())
