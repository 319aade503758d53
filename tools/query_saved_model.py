"""Queries an exported model, on disk or on a server."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.serving import options as serving_options


def work(
    options: serving_options.QuerySavedModelOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.serving import query

    return query.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "query_saved_model",
        serving_options.QuerySavedModelOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
