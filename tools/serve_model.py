"""Serves an exported model over HTTP."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.serving import server_options


def work(
    options: server_options.ServeModelOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.serving import server

    return server.run(options, announce=command_line.print_report)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "serve_model",
        server_options.ServeModelOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
