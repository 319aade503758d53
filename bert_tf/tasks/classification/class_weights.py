"""How much each class counts in the loss, for data where some are rare."""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import label_kinds

BALANCED = "balanced"


def parsed(given: Sequence[str]) -> dict[str, float]:
    """Returns the weights that `NAME=WEIGHT` items name.

    Raises:
        ValueError: an item is no such thing, or a weight is not above 0.
    """
    weights = {}
    for item in given:
        name, separator, text = item.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not (separator and 0 < weight < float("inf")):
            raise ValueError(
                f"--class_weights: expected {BALANCED!r}, or NAME=WEIGHT with weights "
                f"above 0, got {item!r}."
            )
        weights[name] = weight
    return weights


def weights_of(
    given: Sequence[str], task, examples: Sequence[examples_module.InputExample]
) -> Mapping[str, float] | None:
    """Returns the weight of every class, or None where all count the same.

    Args:
        given: the items of --class_weights; classes that they do not name have 1.
        task: `task.Task`.
        examples: those to train on, for `balanced`. Then of N examples and C classes
            one with n examples has N / (C n): all classes count the same. Where an
            example may have several classes, (N - n) / n: having a class counts as
            much as not having it.

    Raises:
        ValueError: a class is none of the task's, or balanced classes have no example.
    """
    if not given:
        return None
    if tuple(given) == (BALANCED,):
        return _balanced(task, examples)
    weights = parsed(given)
    for name in weights:
        if name not in task.labels:
            raise ValueError(
                f"--class_weights: there is no class {name!r}; the classes are "
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
        others = len(examples) - count
        if count == 0 or (is_multi and others == 0):
            have = "no" if count == 0 else "every"
            raise ValueError(
                f"--class_weights={BALANCED}: {have} training example has the class "
                f"{name!r}; give weights by name."
            )
        balanced = len(examples) / (len(task.labels) * count)
        weights[name] = others / count if is_multi else balanced
    return weights
