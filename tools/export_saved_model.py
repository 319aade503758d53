"""Exports a trained model as a SavedModel."""

from bert_tf import command_line

main = command_line.tool_main("export_saved_model")

if __name__ == "__main__":
    raise SystemExit(main())
