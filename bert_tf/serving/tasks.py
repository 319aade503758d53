"""The tasks that can be loaded and exported: one row per task."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedTask:
    """The modules that serve the runs of a task.

    They are imported when a run needs them, so that one task works where another
    cannot be imported.
    """

    predictor: str  # Its `load` returns the predictor of a run folder.
    signatures: str  # Its `create` returns the signatures of the SavedModel.


TASKS = {
    "classification": ServedTask(
        predictor="bert_tf.tasks.classification.predictor",
        signatures="bert_tf.serving.class_signatures",
    ),
    "multiple_choice": ServedTask(
        predictor="bert_tf.tasks.multiple_choice.predictor",
        signatures="bert_tf.serving.choice_signatures",
    ),
    "pretraining": ServedTask(
        predictor="bert_tf.pretraining.predictor",
        signatures="bert_tf.serving.mask_signatures",
    ),
    "question_answering": ServedTask(
        predictor="bert_tf.tasks.question_answering.predictor",
        signatures="bert_tf.serving.span_signatures",
    ),
    "retrieval": ServedTask(
        predictor="bert_tf.tasks.retrieval.predictor",
        signatures="bert_tf.serving.vector_signatures",
    ),
    "token_classification": ServedTask(
        predictor="bert_tf.tasks.token_classification.predictor",
        signatures="bert_tf.serving.tag_signatures",
    ),
}
