"""Exports a trained model as a SavedModel."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.serving import options as serving_options


def work(
    options: serving_options.ExportSavedModelOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.serving import export

    return export.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "export_saved_model",
        serving_options.ExportSavedModelOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
