"""All fine-tuning tasks. The only place outside a task's folder that names it.

It imports nothing of them: each task works where another one cannot be imported, and
the help of a tool does not wait for TensorFlow.
"""

import dataclasses
import importlib
import typing

if typing.TYPE_CHECKING:
    from bert_tf.fine_tuning import task as task_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """Where the parts of a task are. Classes are written "module:Class"."""

    signatures: str  # The module whose `create` returns the SavedModel's signatures.
    task: str | None = None  # Its `task.Task`.
    options: str | None = None  # The record of its tool's options.
    predictor: str | None = None  # A module with `load`, for an entry without `task`.


TASKS = {
    "classification": Entry(
        predictor="bert_tf.tasks.classification.predictor",
        signatures="bert_tf.serving.class_signatures",
    ),
    "multiple_choice": Entry(
        task="bert_tf.tasks.multiple_choice.task:MultipleChoice",
        options="bert_tf.tasks.multiple_choice.options:RunSwagOptions",
        signatures="bert_tf.serving.choice_signatures",
    ),
    "pretraining": Entry(
        predictor="bert_tf.pretraining.predictor",
        signatures="bert_tf.serving.mask_signatures",
    ),
    "question_answering": Entry(
        predictor="bert_tf.tasks.question_answering.predictor",
        signatures="bert_tf.serving.span_signatures",
    ),
    "retrieval": Entry(
        predictor="bert_tf.tasks.retrieval.predictor",
        signatures="bert_tf.serving.vector_signatures",
    ),
    "token_classification": Entry(
        predictor="bert_tf.tasks.token_classification.predictor",
        signatures="bert_tf.serving.tag_signatures",
    ),
}


def declaration(name: str) -> "type[task_module.Task]":
    """Returns the declaration of a task."""
    return _imported(TASKS[name].task)


def options_class(name: str) -> type[typing.Any]:
    """Returns the record of the options of a task's tool."""
    return _imported(TASKS[name].options)


def load(name: str, run_dir: str, settings: typing.Any) -> typing.Any:
    """Returns the predictor of a run or checkpoint of a task; see `bert_tf.load`."""
    entry = TASKS[name]
    if entry.predictor is not None:
        return importlib.import_module(entry.predictor).load(run_dir, settings)
    return declaration(name).PREDICTOR.load(run_dir, settings)


def _imported(address: str | None) -> typing.Any:
    module, _, name = str(address).partition(":")
    return getattr(importlib.import_module(module), name)
