"""Scores of the GLUE tasks and of your own data, as plain formulas.

Shape letters: N examples, C classes.
"""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads


def accuracy(label_ids: np.ndarray, predicted_ids: np.ndarray) -> float:
    """Returns the fraction of correct examples.

    Args:
        label_ids: int [N], the true classes. Or [N, C] with 1 for each class of an
            example, which is then correct only if all its C entries are.
        predicted_ids: int, of the same shape.

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    label_ids, predicted_ids = _checked(label_ids, predicted_ids)
    hits = (label_ids == predicted_ids).reshape(len(label_ids), -1)
    return float(np.mean(np.all(hits, axis=1)))


def f1(label_ids: np.ndarray, predicted_ids: np.ndarray) -> float:
    """Returns F1 of class 1: 2 TP / (2 TP + FP + FN), or 0 instead of 0 / 0.

    Args:
        label_ids: int [N], 1 for positive examples.
        predicted_ids: int [N].

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    label_ids, predicted_ids = _checked(label_ids, predicted_ids)
    is_positive, says_positive = label_ids == 1, predicted_ids == 1
    hits = np.sum(is_positive & says_positive)
    total = np.sum(is_positive) + np.sum(says_positive)
    return float(2 * hits / total) if total else 0.0


def micro_f1(indicators: np.ndarray, predicted: np.ndarray) -> float:
    """Returns F1 over the decisions about all examples and all classes.

    Args:
        indicators: int [N, C], 1 for each class of an example.
        predicted: int [N, C].

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    indicators, predicted = _checked(indicators, predicted)
    return f1(indicators.reshape(-1), predicted.reshape(-1))


def macro_f1(indicators: np.ndarray, predicted: np.ndarray) -> float:
    """Returns the mean of the F1 of each class. Arguments as in `micro_f1`."""
    indicators, predicted = _checked(indicators, predicted)
    pairs = zip(indicators.T, predicted.T, strict=True)
    return float(np.mean([f1(truth, guess) for truth, guess in pairs]))


def matthews(label_ids: np.ndarray, predicted_ids: np.ndarray) -> float:
    """Returns the Matthews correlation coefficient: 1 is perfect, 0 is chance level.

    It is the correlation of the two arrays. With more than two classes, it is the
    correlation of their one-hot encodings (Gorodkin, 2004). It is 0 if one array is
    constant.

    Args:
        label_ids: int [N], class numbers from 0.
        predicted_ids: int [N].

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    label_ids, predicted_ids = _checked(label_ids, predicted_ids)
    classes = np.arange(max(label_ids.max(), predicted_ids.max(), 1) + 1)
    truth = (label_ids[:, np.newaxis] == classes).astype(float)  # [N, C]
    guess = (predicted_ids[:, np.newaxis] == classes).astype(float)
    truth -= np.mean(truth, axis=0)
    guess -= np.mean(guess, axis=0)
    scale = np.sqrt(np.sum(truth**2) * np.sum(guess**2))
    return float(np.sum(truth * guess) / scale) if scale else 0.0


def pearson(values: np.ndarray, predicted: np.ndarray) -> float:
    """Returns the Pearson correlation; 0 if one array is constant.

    Args:
        values: float [N], the true values.
        predicted: float [N].

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    return _correlation("pearsonr", values, predicted)


def spearman(values: np.ndarray, predicted: np.ndarray) -> float:
    """Returns the Spearman rank correlation. Arguments as in `pearson`."""
    return _correlation("spearmanr", values, predicted)


SCORES = {
    "accuracy": accuracy,
    "f1": f1,
    "macro_f1": macro_f1,
    "matthews": matthews,
    "micro_f1": micro_f1,
    "pearson": pearson,
    "spearman": spearman,
}
# Other tasks have the scores of their kind of label.
SCORES_OF_TASK = {
    "cola": ("accuracy", "matthews"),
    "mrpc": ("accuracy", "f1"),
    "qqp": ("accuracy", "f1"),
}
SCORES_OF_KIND = {
    checkpoint_heads.SINGLE_LABEL: ("accuracy",),
    checkpoint_heads.MULTI_LABEL: ("accuracy", "macro_f1", "micro_f1"),
    checkpoint_heads.REGRESSION: ("pearson", "spearman"),
}


def task_scores(
    task_name: str | None,
    truth: np.ndarray,
    predicted: np.ndarray,
    *,
    kind: str = checkpoint_heads.SINGLE_LABEL,
) -> dict[str, float]:
    """Returns a task's scores by name.

    Args:
        task_name: GLUE task, "xnli", or None for your own data.
        truth: the labels. int [N] for one class, int [N, C] for several classes,
            float [N] for regression.
        predicted: the predictions, of the same shape.
        kind: of the labels, one of `heads.LABEL_KINDS`.
    """
    names = SCORES_OF_TASK.get(task_name or "", SCORES_OF_KIND[kind])
    return {name: SCORES[name](truth, predicted) for name in names}


def baseline_scores(
    task_name: str | None,
    truth: np.ndarray,
    kind: str,
) -> dict[str, float]:
    """Returns the scores of always giving the most frequent answer.

    This is the most frequent class of the examples, for each class of a multi-label
    task whether most examples have it, or the mean of the numbers. The arguments are
    those of `task_scores`.
    """
    if kind == checkpoint_heads.SINGLE_LABEL:
        constant = np.argmax(np.bincount(truth))
    else:
        constant = np.mean(truth, axis=0)
        if kind == checkpoint_heads.MULTI_LABEL:
            constant = constant >= 0.5
    predicted = np.broadcast_to(constant.astype(truth.dtype), truth.shape)
    return task_scores(task_name, truth, predicted, kind=kind)


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
        for part, scores in by_set.items()
        for name, value in scores.items()
    }
    if "dev" not in by_set:
        first = next(iter(by_set.values()))
        for name in first:
            values = [scores[name] for scores in by_set.values()]
            results[f"eval_{name}"] = sum(values) / len(values)
    return results


def _correlation(name, values, predicted):
    values, predicted = _checked(values, predicted)
    if np.ptp(values) == 0 or np.ptp(predicted) == 0:
        return 0.0
    import scipy.stats  # Takes a second, and only regression needs it.

    return float(getattr(scipy.stats, name)(values, predicted).statistic)


def _checked(truth, predicted):
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.shape != predicted.shape or truth.size == 0:
        raise ValueError(
            f"Expected as many predictions as labels, and at least one, got "
            f"{predicted.size} predictions and {truth.size} labels."
        )
    return truth, predicted
