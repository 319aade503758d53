"""Converts a BERT checkpoint between formats and verifies the result."""

import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.checkpoints.conversion import options as conversion_options


def work(
    options: conversion_options.ConvertCheckpointOptions,
    progress: progress_module.Progress,
) -> str:
    from bert_tf.checkpoints.conversion import workflow as conversion_workflow

    return conversion_workflow.run(options, progress=progress)


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "convert_checkpoint",
        conversion_options.ConvertCheckpointOptions,
        work,
        argv,
        typed=typed,
    )


if __name__ == "__main__":
    sys.exit(main())
