"""Queries an exported model, on disk or on a server."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "query_saved_model")

if __name__ == "__main__":
    raise SystemExit(main())
