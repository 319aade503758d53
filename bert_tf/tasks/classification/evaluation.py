"""What logits are worth: the scores and the loss of one set of examples."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf.modeling import classifier
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluated:
    """How a model did on one set."""

    scores: Mapping[str, float]  # By name, with `loss`, the mean over the examples.
    said: tuple[str, ...]  # What the model says of each example, as a label has it.
    # Whether that is the label; a number, within a standard deviation of the labels.
    is_right: tuple[bool, ...]


def evaluated(
    examples: Sequence[examples_module.InputExample],
    logits: np.ndarray,
    task,
    *,
    task_name: str | None,
) -> Evaluated:
    """Returns scores, loss and answers.

    Args:
        examples: N examples with labels.
        logits: float32 [N, C].
        task: `task.Task` of the model.
        task_name: of the data, which decides on the scores; None for own data.
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
        said=tuple(classification_predictions.said(answer) for answer in answers),
        is_right=tuple(_is_right(truth, predicted, task.label_kind).tolist()),
    )


def _is_right(truth, predicted, kind):
    if kind == label_kinds.REGRESSION:
        return np.abs(truth - predicted) <= np.std(truth)
    return np.all((truth == predicted).reshape(len(truth), -1), axis=1)


def named(by_set: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Returns the scores of all sets under names of their own.

    "dev" has `eval_NAME`, "dev_mismatched" `eval_NAME_mismatched`. Where there is no
    "dev", as of XNLI in several languages, `eval_NAME` is the mean of the sets.
    """
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
