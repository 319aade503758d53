"""Evaluation: scores, loss and predicted labels of a set of examples."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.modeling import classifier
from bert_tf.tasks.classification import class_scores
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import plots
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import scores
from bert_tf.tasks.classification import task as task_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluated:
    """Results of a model on one set."""

    scores: Mapping[
        str, float
    ]  # By name, including `loss`, the mean over the examples.
    predicted: tuple[str, ...]  # In the format of the labels.
    # A predicted number counts as correct within one standard deviation of the labels.
    is_correct: tuple[bool, ...]
    class_table: str | None  # See `class_scores.table`. None for regression.
    plot_values: Mapping[str, Any]  # See `plots.values_of`.


def evaluated(
    examples: Sequence[examples_module.InputExample],
    logits: np.ndarray,
    task: task_module.Task,
    *,
    task_name: str | None,
) -> Evaluated:
    """Returns the scores, the loss and the predicted labels.

    Args:
        examples: N examples with labels.
        logits: float32 [N, C].
        task: of the model.
        task_name: of the data; determines the scores. None for your own data.
    """
    columns = features_module.label_columns(examples, task)
    [truth] = columns.values()
    predicted = classification_predictions.predicted_of(logits, task)
    found = scores.task_scores(task_name, truth, predicted, kind=task.label_kind)
    losses = classifier.MODELS[task.label_kind].example_losses(columns, logits)
    loss = float(np.mean(np.asarray(losses), dtype=np.float64))
    answers = classification_predictions.answers_of(logits, task)
    return Evaluated(
        scores=found | {"loss": loss},
        predicted=tuple(
            classification_predictions.label_text(answer) for answer in answers
        ),
        is_correct=tuple(_is_correct(truth, predicted, task.label_kind).tolist()),
        class_table=None
        if task.label_kind == label_kinds.REGRESSION
        else class_scores.table(truth, predicted, task.labels),
        plot_values=plots.values_of(examples, logits, task),
    )


def _is_correct(truth, predicted, kind):
    if kind == label_kinds.REGRESSION:
        return np.abs(truth - predicted) <= np.std(truth)
    return np.all((truth == predicted).reshape(len(truth), -1), axis=1)


def named(
    by_set: Mapping[str, Mapping[str, float]], languages: Sequence[str] = ()
) -> dict[str, float]:
    """Returns the scores of all sets in one dictionary, under different names.

    A score of the set "dev" is called `eval_NAME`, and a score of "dev_mismatched"
    `eval_NAME_mismatched`. If there is no set "dev", as for XNLI in several languages,
    `eval_NAME` is the mean over the sets.

    Args:
        by_set: scores by name, by set.
        languages: languages of the sets. If there is only one, the scores of the set
            "dev" are also called `eval_NAME_LANGUAGE`.
    """
    if len(languages) == 1 and "dev" in by_set:
        by_set = {f"dev_{languages[0]}": by_set["dev"]}
    results = {
        f"eval_{name}{part.removeprefix('dev')}": value
        for part, found in by_set.items()
        for name, value in found.items()
    }
    if "dev" not in by_set:
        first = next(iter(by_set.values()))
        for name in first:
            values = [found[name] for found in by_set.values()]
            results[f"eval_{name}"] = sum(values) / len(values)
    return results
