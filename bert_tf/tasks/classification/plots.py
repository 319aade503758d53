"""What the plots of a classification run need; see `training.plot_data`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import scores
from bert_tf.tasks.classification import task as task_module
from bert_tf.training import plot_data


def values_of(
    examples: Sequence[examples_module.InputExample],
    logits: np.ndarray,
    task: task_module.Task,
) -> dict[str, Any]:
    """Returns the confusion matrix and the calibration; empty if not single-label.

    Args:
        examples: N examples with labels.
        logits: float32 [N, C].
        task: of the model.
    """
    if task.label_kind != label_kinds.SINGLE_LABEL:
        return {}
    [truth] = features_module.label_columns(examples, task).values()
    predicted = classification_predictions.predicted_of(logits, task)
    return {
        "confusion": plot_data.confusion(truth, predicted, task.labels or ()),
        "calibration": plot_data.calibration_of_logits(logits, truth),
    }


def baseline_scores(
    examples: Sequence[examples_module.InputExample],
    task: task_module.Task,
    task_name: str | None,
) -> dict[str, float]:
    """Returns the scores of always giving the most frequent answer.

    This is the most frequent class of the examples, for each class of a multi-label
    task whether most examples have it, or the mean of the numbers.

    Args:
        examples: N examples with labels.
        task: of the model.
        task_name: see `scores.task_scores`.
    """
    [truth] = features_module.label_columns(examples, task).values()
    if task.label_kind == label_kinds.SINGLE_LABEL:
        constant = np.argmax(np.bincount(truth))
    else:
        constant = np.mean(truth, axis=0)
        if task.label_kind == label_kinds.MULTI_LABEL:
            constant = constant >= 0.5
    predicted = np.broadcast_to(constant.astype(truth.dtype), truth.shape)
    return scores.task_scores(task_name, truth, predicted, kind=task.label_kind)
