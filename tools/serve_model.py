"""Serves an exported model over HTTP."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "serve_model")

if __name__ == "__main__":
    raise SystemExit(main())
