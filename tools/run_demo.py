"""Runs every stage in turn, from raw text to a served answer."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "run_demo")

if __name__ == "__main__":
    raise SystemExit(main())
