"""Serves an exported model over HTTP."""

from bert_tf import command_line

main = command_line.tool_main("serve_model")

if __name__ == "__main__":
    raise SystemExit(main())
