"""Checks the data of a task before training."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "check_data")

if __name__ == "__main__":
    raise SystemExit(main())
