"""Collects GLUE scores in one table, with the paper's average."""

from bert_tf import command_line

main = command_line.tool_main("evaluate_glue")

if __name__ == "__main__":
    raise SystemExit(main())
