"""Exports a trained model as a SavedModel."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "export_saved_model")

if __name__ == "__main__":
    raise SystemExit(main())
