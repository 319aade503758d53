"""Turns sentences into TFRecord files of masked pretraining examples."""

from bert_tf import command_line

main = command_line.tool_main("create_pretraining_data")

if __name__ == "__main__":
    raise SystemExit(main())
