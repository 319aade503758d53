"""Queries an exported model, on disk or on a server."""

from bert_tf import command_line

main = command_line.tool_main("query_saved_model")

if __name__ == "__main__":
    raise SystemExit(main())
