"""Converts the Wikipedia part of TriviaQA into SQuAD's format."""

import functools

from bert_tf import command_line

main = functools.partial(command_line.run_tool, "convert_triviaqa")

if __name__ == "__main__":
    raise SystemExit(main())
