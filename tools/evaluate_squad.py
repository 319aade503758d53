"""Scores predictions in the same way as SQuAD's official scripts."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "evaluate_squad")

if __name__ == "__main__":
    raise SystemExit(main())
