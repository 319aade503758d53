"""Writes the vectors of word pieces or of whole texts."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.tasks.feature_extraction import options as feature_extraction_options


def work(
    options: feature_extraction_options.ExtractFeaturesOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.tasks.feature_extraction import workflow as feature_extraction_workflow

    return feature_extraction_workflow.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "extract_features",
        feature_extraction_options.ExtractFeaturesOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
