"""Pretrains BERT on the files of create_pretraining_data, and evaluates it."""

from bert_tf import command_line

main = command_line.tool_main("run_pretraining")

if __name__ == "__main__":
    raise SystemExit(main())
