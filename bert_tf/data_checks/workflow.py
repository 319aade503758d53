"""The work of check_data: runs the checks of one task and estimates its training."""

import dataclasses
from typing import Any

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data_checks import options as data_checks_options
from bert_tf.data_checks import tasks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.tokenization import vocabulary as vocabulary_module

# Accepted for every task, even if its tool has no such flags.
_STARTING_POINT = ("init_checkpoint", "bert_config_file", "vocab_file", "do_lower_case")


def run(
    options: data_checks_options.CheckDataOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> findings_module.Findings:
    """Checks the data of a task and returns the findings.

    Args:
        options: of the tool.
        progress: see `bert_tf.progress`.

    Raises:
        OptionError: a flag is missing, or does not belong to the task.
    """
    task = tasks.TASKS[options.task]()
    record: Any = task_options(options)
    # As in the task's own tool, also if the flag is not given.
    start = _start(options, record.do_lower_case, progress)
    findings = fine_tuning_checks.start_findings(start)
    workload = task.check(record, start, findings, progress=progress)
    if workload is not None:
        fine_tuning_checks.add_estimate(findings, start, record, workload)
    return findings


def report(options: data_checks_options.CheckDataOptions) -> str:
    """Returns the report of `run`, which is a `FailureReport` if there are errors."""
    return run(options).report()


def _start(
    options: data_checks_options.CheckDataOptions,
    do_lower_case: bool | None,
    progress: progress_module.Progress,
) -> starting_point.StartingPoint:
    """Returns vocabulary, casing and configuration of the model to be trained."""
    has_config = options.init_checkpoint or options.bert_config_file
    if options.task == "pretraining" and options.vocab_file and not has_config:
        return starting_point.StartingPoint(
            config=None,  # type: ignore[arg-type]  # Its checks do not read it.
            vocabulary=vocabulary_module.Vocabulary.load(options.vocab_file),
            do_lower_case=do_lower_case is not False,
        )
    return starting_point.find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=do_lower_case,
        logs_casing=False,  # It becomes a finding.
        progress=progress,
    )


def task_options(
    options: data_checks_options.CheckDataOptions,
) -> options_module.Options:
    """Returns the options record of the task's own tool.

    Raises:
        OptionError: the tool does not have a flag, or refuses the combination.
    """
    task = tasks.TASKS[options.task]()
    names = {field.name: field for field in dataclasses.fields(task.options)}
    given = {
        name: value
        for name, value in options.given().items()
        if name in names or name not in _STARTING_POINT
    }
    for name, value in given.items():
        if name not in names:
            raise options_module.OptionError(
                f"--{name} cannot be combined with --task={options.task}."
            )
        if isinstance(value, tuple) and "tuple" not in str(names[name].type):
            if len(value) > 1:
                raise options_module.OptionError(
                    f"--{name}: --task={options.task} takes one value, got "
                    f"{len(value)}."
                )
            given[name] = value[0]
    for flag, reasons in task.implied.items():
        given[flag] = any(reason in given for reason in reasons)
    return task.options(**{**task.unread, **given, **task.follows(given)})
