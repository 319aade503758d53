"""Collects GLUE scores in one table, with the paper's average."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "evaluate_glue")

if __name__ == "__main__":
    raise SystemExit(main())
