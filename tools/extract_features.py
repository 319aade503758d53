"""Writes the vectors of word pieces or of whole texts."""

from bert_tf import command_line

main = command_line.tool_main("extract_features")

if __name__ == "__main__":
    raise SystemExit(main())
