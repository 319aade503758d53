"""The tasks whose data can be checked: one function per task.

Each function imports its task, so that `check_data --help` imports none of them.
"""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from bert_tf import options as options_module

_Values = Mapping[str, object]  # Options by name.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """How the data of a task is checked."""

    options: type[options_module.Options]  # Of the task's tool.
    check: Callable[..., Any]  # Its `fine_tuning.checks.Check`.
    # Placeholders for options that the tool requires and the checks do not read.
    unread: _Values
    # Flag of the tool -> flags, any one of which switches it on.
    implied: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # Returns further values that follow from the given ones.
    follows: Callable[[_Values], _Values] = lambda given: {}


_OF_A_RUN = {"output_dir": "."}
_FILES = {
    "do_train": ("data_dir", "train_file", "tfds_name"),
    "do_eval": ("eval_file", "validation_split"),
    "do_predict": ("predict_file",),
}


def _classification() -> Task:
    from bert_tf.tasks.classification import options as classification_options

    def follows(given: _Values) -> _Values:
        """Lets a task without training data, such as AX, be checked."""
        if str(given.get("task_name")).lower() in (
            classification_options.WITHOUT_TRAINING
        ):
            return {"do_train": False, "do_predict": True}
        return {}

    return _declared("classification", follows=follows)


def _multiple_choice() -> Task:
    return _declared("multiple_choice")


def _declared(name: str, **values: Any) -> Task:
    """Returns a task that has a declaration."""
    from bert_tf.fine_tuning import checks as fine_tuning_checks
    from bert_tf.fine_tuning import tasks

    return Task(
        options=tasks.options_class(name),
        check=functools.partial(fine_tuning_checks.check, tasks.declaration(name)),
        unread=_OF_A_RUN,
        **{"implied": _FILES, **values},
    )


def _pretraining() -> Task:
    from bert_tf.pretraining_data import checks as pretraining_data_checks
    from bert_tf.pretraining_data import options as pretraining_data_options

    return Task(
        options=pretraining_data_options.CreatePretrainingDataOptions,
        check=pretraining_data_checks.check,
        unread={"output_file": "unwritten", "vocab_file": "unread"},
    )


def _question_answering() -> Task:
    implied = {
        "do_train": ("train_file", "tfds_name"),
        "do_predict": ("predict_file",),
    }
    return _declared("question_answering", implied=implied)


def _retrieval() -> Task:
    return _declared("retrieval")


def _token_classification() -> Task:
    return _declared("token_classification")


TASKS: dict[str, Callable[[], Task]] = {
    "classification": _classification,
    "multiple_choice": _multiple_choice,
    "pretraining": _pretraining,
    "question_answering": _question_answering,
    "retrieval": _retrieval,
    "token_classification": _token_classification,
}
