"""All fine-tuning tasks, which are imported only when they are used."""

import dataclasses
import pkgutil
import typing


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """Where the parts of a task are: "module:name"."""

    signatures: str  # Returns the signatures of the SavedModel.
    task: str | None = None  # The `task.Task`.
    options: str | None = None  # The record of the options of its tool.
    predictor: str | None = None  # Loads a predictor, for an entry without `task`.


RETRIEVAL = "retrieval"
TASKS = {
    "classification": Entry(
        task="bert_tf.tasks.classification.task:Classification",
        options="bert_tf.tasks.classification.options:RunClassifierOptions",
        signatures="bert_tf.serving.row_signatures:ClassSignatures",
    ),
    "multiple_choice": Entry(
        task="bert_tf.tasks.multiple_choice.task:MultipleChoice",
        options="bert_tf.tasks.multiple_choice.options:RunSwagOptions",
        signatures="bert_tf.serving.row_signatures:ChoiceSignatures",
    ),
    "pretraining": Entry(
        predictor="bert_tf.pretraining.predictor:load",
        signatures="bert_tf.serving.row_signatures:MaskSignatures",
    ),
    "question_answering": Entry(
        task="bert_tf.tasks.question_answering.task:QuestionAnswering",
        options="bert_tf.tasks.question_answering.options:RunSquadOptions",
        signatures="bert_tf.serving.span_signatures:SpanSignatures",
    ),
    RETRIEVAL: Entry(
        task="bert_tf.tasks.retrieval.task:Retrieval",
        options="bert_tf.tasks.retrieval.options:RunRetrievalOptions",
        signatures="bert_tf.serving.row_signatures:retrieval_signatures",
    ),
    "token_classification": Entry(
        task="bert_tf.tasks.token_classification.task:TokenClassification",
        options="bert_tf.tasks.token_classification.options:RunNerOptions",
        signatures="bert_tf.serving.tag_signatures:TagSignatures",
    ),
}


def declaration(name: str) -> type[typing.Any]:
    """Returns the declaration of a task, a subclass of `task.Task`."""
    return pkgutil.resolve_name(str(TASKS[name].task))


def options_class(name: str) -> type[typing.Any]:
    """Returns the record of the options of a task's tool."""
    return pkgutil.resolve_name(str(TASKS[name].options))


def signatures(name: str, predictor: typing.Any) -> typing.Any:
    """Returns the signatures of a SavedModel; see `serving.signatures`."""
    return pkgutil.resolve_name(TASKS[name].signatures)(predictor)


def load(name: str, run_dir: str, settings: typing.Any) -> typing.Any:
    """Returns the predictor of a run or checkpoint of a task; see `bert_tf.load`."""
    entry = TASKS[name]
    if entry.predictor is not None:
        return pkgutil.resolve_name(entry.predictor)(run_dir, settings)
    return declaration(name).PREDICTOR.load(run_dir, settings)
