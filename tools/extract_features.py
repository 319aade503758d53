"""Writes the vectors of word pieces or of whole texts."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "extract_features")

if __name__ == "__main__":
    raise SystemExit(main())
