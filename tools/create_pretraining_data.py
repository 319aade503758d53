"""Turns sentences into TFRecord files of masked pretraining examples."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "create_pretraining_data")

if __name__ == "__main__":
    raise SystemExit(main())
