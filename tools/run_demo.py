"""Runs every tool in turn, from raw text to a served answer."""

import functools
import sys

from bert_tf import command_line
from bert_tf.demo import options as demo_options


def work(options, progress):
    from bert_tf.demo import workflow as demo_workflow

    # Shown at once, so that commands and the bars of their tools keep their order.
    return demo_workflow.run(options, show=functools.partial(print, flush=True))


def main(argv=None, typed=None):
    return command_line.run(
        "run_demo", demo_options.RunDemoOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
