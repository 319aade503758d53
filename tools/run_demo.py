"""Runs every stage in turn, from raw text to a served answer."""

import functools
import sys

from bert_tf import command_line
from bert_tf import progress as progress_module
from bert_tf.demo import options as demo_options


def work(
    options: demo_options.RunDemoOptions, progress: progress_module.Progress
) -> str:
    from bert_tf.demo import workflow as demo_workflow

    # Flushed, so that the commands stay in order with the output of their tools.
    return demo_workflow.run(options, show=functools.partial(print, flush=True))


def main(argv: list[str] | None = None, typed: str | None = None) -> int:
    return command_line.run(
        "run_demo", demo_options.RunDemoOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
