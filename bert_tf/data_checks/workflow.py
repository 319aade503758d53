"""The work of check_data: runs the checks of one task and estimates its training."""

import dataclasses
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data_checks import options as data_checks_options
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.pretraining_data import checks as pretraining_data_checks
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tasks.classification import checks as classification_checks
from bert_tf.tasks.classification import data_options
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.multiple_choice import checks as multiple_choice_checks
from bert_tf.tasks.multiple_choice import options as multiple_choice_options
from bert_tf.tasks.question_answering import checks as question_answering_checks
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.retrieval import checks as retrieval_checks
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.token_classification import checks as token_classification_checks
from bert_tf.tasks.token_classification import options as token_classification_options
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import estimates

_Values = Mapping[str, object]  # Options by name.
# Accepted for every task, even if its tool has no such flags.
_STARTING_POINT = ("init_checkpoint", "bert_config_file", "vocab_file", "do_lower_case")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """How the data of a task is checked."""

    options: type[options_module.Options]  # Of the task's tool.
    check: fine_tuning_checks.Check  # The function `check` of the task's checks.py.
    # Placeholders for options that the tool requires and the checks do not read.
    unread: Mapping[str, object]
    # Flag of the tool -> flags, any one of which switches it on.
    implied: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # Returns further values that follow from the given ones.
    follows: Callable[[_Values], _Values] = lambda given: {}


def _follows_for_classifier(given: _Values) -> _Values:
    """Lets a task without training data, such as AX, be checked."""
    if str(given.get("task_name")).lower() in data_options.WITHOUT_TRAINING:
        return {"do_train": False, "do_predict": True}
    return {}


def _follows_for_retrieval(given: _Values) -> _Values:
    """Fills in the bi-encoder run that a cross-encoder requires; it is not read."""
    if given.get("model") == retrieval_options.CROSS_ENCODER:
        return {"retrieve_with": "unread"}
    return {}


_OF_A_RUN = {"output_dir": "."}
_FILES = {
    "do_train": ("data_dir", "train_file", "tfds_name"),
    "do_eval": ("eval_file",),
    "do_predict": ("predict_file",),
}
TASKS = {
    "classification": Task(
        options=classification_options.RunClassifierOptions,
        check=classification_checks.check,
        unread=_OF_A_RUN,
        implied=_FILES,
        follows=_follows_for_classifier,
    ),
    "multiple_choice": Task(
        options=multiple_choice_options.RunSwagOptions,
        check=multiple_choice_checks.check,
        unread=_OF_A_RUN,
        implied=_FILES,
    ),
    "pretraining": Task(
        options=pretraining_data_options.CreatePretrainingDataOptions,
        check=pretraining_data_checks.check,
        unread={"output_file": "unwritten", "vocab_file": "unread"},
    ),
    "question_answering": Task(
        options=question_answering_options.RunSquadOptions,
        check=question_answering_checks.check,
        unread=_OF_A_RUN,
        implied={"do_train": ("train_file",), "do_predict": ("predict_file",)},
    ),
    "retrieval": Task(
        options=retrieval_options.RunRetrievalOptions,
        check=retrieval_checks.check,
        unread=_OF_A_RUN,
        implied=_FILES,
        follows=_follows_for_retrieval,
    ),
    "token_classification": Task(
        options=token_classification_options.RunNerOptions,
        check=token_classification_checks.check,
        unread=_OF_A_RUN,
        implied={"do_train": ("data_dir",)},
    ),
}


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
    task = TASKS[options.task]
    record = task_options(options)
    start = _start(options, progress)
    findings = findings_module.Findings()
    workload = task.check(record, start, findings, progress=progress)
    if workload is not None:
        _estimate(findings, start, record, workload)
    return findings


def _start(
    options: data_checks_options.CheckDataOptions, progress: progress_module.Progress
) -> starting_point.StartingPoint:
    """Returns vocabulary, casing and configuration of the model to be trained."""
    has_config = options.init_checkpoint or options.bert_config_file
    if options.task == "pretraining" and options.vocab_file and not has_config:
        return starting_point.StartingPoint(
            config=None,  # type: ignore[arg-type]  # Its checks do not read it.
            vocabulary=vocabulary_module.Vocabulary.load(options.vocab_file),
            do_lower_case=options.do_lower_case is not False,
        )
    return starting_point.find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        progress=progress,
    )


def task_options(
    options: data_checks_options.CheckDataOptions,
) -> options_module.Options:
    """Returns the options record of the task's own tool.

    Raises:
        OptionError: the tool does not have a flag, or refuses the combination.
    """
    task = TASKS[options.task]
    names = {field.name: field for field in dataclasses.fields(task.options)}
    given = {
        name: value
        for name, value in options.given().items()
        if name in names or name not in _STARTING_POINT
    }
    for name, value in given.items():
        if name not in names:
            raise options_module.OptionError(
                f"--{name} does not go with --task={options.task}."
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


def _estimate(
    findings: findings_module.Findings,
    start: starting_point.StartingPoint,
    options: Any,
    workload: Any,
) -> None:
    if start.config.max_position_embeddings < workload.sequence_length:
        findings.error(
            "length",
            f"--max_seq_length={workload.sequence_length}, but the model has "
            f"{start.config.max_position_embeddings} positions "
            "(max_position_embeddings)",
        )
        return
    found = estimates.estimate_fine_tuning(
        start.config, options, workload, num_train_epochs=options.num_train_epochs
    )
    if not found.num_train_steps:
        findings.warning(
            "estimate",
            f"{workload.num_examples:,} examples do not fill one batch of "
            f"--train_batch_size={options.train_batch_size}; training will fail",
        )
        return
    findings.note(
        "estimate",
        f"{found.num_train_steps:,} steps of {options.train_batch_size} take "
        f"{found.memory_bytes / 2**30:.1f} GiB and at least "
        f"{estimates.format_seconds(found.seconds)}, the time at this machine's peak "
        "speed of matrix multiplication",
    )
