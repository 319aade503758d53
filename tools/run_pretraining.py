"""Pretrains BERT on the files of create_pretraining_data, and evaluates it."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "run_pretraining")

if __name__ == "__main__":
    raise SystemExit(main())
