"""Asks an exported model, on disk or behind a server."""

import sys

from bert_tf import command_line
from bert_tf.serving import options as serving_options


def work(options, progress):
    from bert_tf.serving import query

    return query.run(options)


def main(argv=None, typed=None):
    return command_line.run(
        "query_saved_model",
        serving_options.QuerySavedModelOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
