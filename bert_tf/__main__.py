"""The command `bert_tf`: every tool as a subcommand; `python -m bert_tf` too."""

import importlib
import sys

import bert_tf
from bert_tf import command_line
from bert_tf import help_text
from bert_tf import subcommands


def main(argv: list[str] | None = None) -> int:
    """Runs the subcommand that the first argument names, and returns its exit code.

    Args:
        argv: arguments without the program's name; None takes the process's own.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ["help"]:  # `bert_tf help classify`, as in git.
        argv = [*argv[1:2], "--help"]
    if not argv or argv[0] in command_line.HELP_FLAGS:
        return command_line.print_report(help_text.overview(bert_tf.__version__))
    if argv[0] in ("--version", "-V"):
        return command_line.print_report(f"bert_tf {bert_tf.__version__}")
    subcommand = subcommands.find(argv[0])
    if subcommand is None:
        return command_line.complain("bert_tf", _unknown(argv[0]), 2)
    try:
        tool = importlib.import_module(f"bert_tf.tools.{subcommand.tool}")
    except ModuleNotFoundError as error:
        if error.name != "bert_tf.tools":
            raise
        # The folder tools/ of a checkout becomes bert_tf.tools by installing it.
        sentence = "The tools are not installed; run pip install -e . in the checkout."
        return command_line.complain("bert_tf", sentence, 1)
    return tool.main(argv[1:], typed=f"bert_tf {argv[0]}")


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"Expected a subcommand before {name}; `bert_tf --help` lists them."
    nearest = subcommands.nearest_name(name)
    hint = f"did you mean {nearest}?" if nearest else "`bert_tf --help` lists them all."
    return f"Unknown subcommand {name!r}; {hint}"


if __name__ == "__main__":
    sys.exit(main())
