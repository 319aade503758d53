"""Checks the data of a task before anyone trains on them."""

import sys

from bert_tf import command_line
from bert_tf.data_checks import options as data_checks_options


def work(options, progress):
    from bert_tf.data_checks import workflow as data_checks_workflow

    findings = data_checks_workflow.run(options, progress=progress)
    report = findings.report()
    return command_line.FailureReport(report=report) if findings.has_errors else report


def main(argv=None, typed=None):
    return command_line.run(
        "check_data", data_checks_options.CheckDataOptions, work, argv, typed=typed
    )


if __name__ == "__main__":
    sys.exit(main())
