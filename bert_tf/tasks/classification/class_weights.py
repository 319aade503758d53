"""Weights of the classes in the loss, for data in which some classes are rare.

A class weight becomes a weight of the examples that have the class. The loss is already
a weighted sum divided by the sum of the weights (padding rows have weight 0). The model
therefore needs no second mechanism, and the result does not depend on how a batch is
divided among devices. The release has no class weights.
"""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import task as task_module

BALANCED = "balanced"


def parse(items: Sequence[str]) -> dict[str, float]:
    """Returns the weights in a list of `NAME=WEIGHT`, by class.

    Raises:
        ValueError: an item has a different form, or a weight is not positive and
        finite.
    """
    weights = {}
    for item in items:
        name, separator, text = item.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not (separator and 0 < weight < float("inf")):
            raise ValueError(
                f"--class_weights: expected {BALANCED!r}, or NAME=WEIGHT with a "
                f"positive weight, got {item!r}."
            )
        weights[name] = weight
    return weights


def weights_of(
    items: Sequence[str],
    task: task_module.Task,
    examples: Sequence[examples_module.InputExample],
) -> Mapping[str, float] | None:
    """Returns the weight of each class, or None if no weights are given.

    `balanced` derives the weights from the training examples. Among N examples and C
    classes, a class with n examples has the weight N / (C n), so that all classes have
    the same total weight. If an example can have several classes, the weight is
    (N - n) / n, so that the examples with the class weigh as much as those without.

    Args:
        items: values of --class_weights. Classes that they do not name have weight 1.
        task: of the run.
        examples: the training examples.

    Raises:
        ValueError: the task does not have a class, or `balanced` is given and a class
            has no training examples.
    """
    if not items:
        return None
    if tuple(items) == (BALANCED,):
        return _balanced(task, examples)
    weights = parse(items)
    for name in weights:
        if name not in task.labels:
            raise ValueError(
                f"--class_weights: unknown class {name!r}; the classes are "
                f"{', '.join(task.labels)}."
            )
    return {name: weights.get(name, 1.0) for name in task.labels}


def _balanced(task, examples):
    is_multi = task.label_kind == label_kinds.MULTI_LABEL
    columns = features_module.label_columns(examples, task)
    if is_multi:
        counts = np.sum(columns["label_indicators"], axis=0)
    else:
        counts = np.bincount(columns["label_ids"], minlength=len(task.labels))
    weights = {}
    for name, count in zip(task.labels, counts.tolist(), strict=True):
        num_without = len(examples) - count
        if count == 0 or (is_multi and num_without == 0):
            which = "no" if count == 0 else "every"
            raise ValueError(
                f"--class_weights={BALANCED}: {which} training example has the class "
                f"{name!r}; pass the weights by name, as in {name}=1."
            )
        balanced = len(examples) / (len(task.labels) * count)
        weights[name] = num_without / count if is_multi else balanced
    return weights
