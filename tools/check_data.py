"""Checks the data of a task before anyone trains on them."""

import sys

from bert_tf import command_line
from bert_tf.checking import options as checking_options


def work(options, progress):
    from bert_tf.checking import workflow as checking_workflow

    findings = checking_workflow.run(options, progress=progress)
    report = findings.report()
    return command_line.FailureReport(report=report) if findings.has_errors else report


def main(argv=None, typed=None):
    return command_line.run(
        "check_data", checking_options.CheckDataOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
