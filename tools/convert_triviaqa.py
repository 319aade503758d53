"""Converts the Wikipedia part of TriviaQA into SQuAD's format."""

from bert_tf import command_line

main = command_line.tool_main("convert_triviaqa")

if __name__ == "__main__":
    raise SystemExit(main())
