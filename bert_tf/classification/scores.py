"""Scores of GLUE's classification tasks, as plain formulas over label ids."""

import numpy as np


def accuracy(label_ids: np.ndarray, predicted_ids: np.ndarray) -> float:
    """Returns the share of examples whose class was found.

    Args:
        label_ids: int [N], the true classes.
        predicted_ids: int [N].

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    label_ids, predicted_ids = _checked(label_ids, predicted_ids)
    return float(np.mean(label_ids == predicted_ids))


def f1(label_ids: np.ndarray, predicted_ids: np.ndarray) -> float:
    """Returns F1 of class 1: 2 TP / (2 TP + FP + FN); 0 where that is 0 / 0.

    Args:
        label_ids: int [N], 1 for positive examples.
        predicted_ids: int [N].

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    label_ids, predicted_ids = _checked(label_ids, predicted_ids)
    is_positive, says_positive = label_ids == 1, predicted_ids == 1
    found = np.sum(is_positive & says_positive)
    total = np.sum(is_positive) + np.sum(says_positive)
    return float(2 * found / total) if total else 0.0


def matthews(label_ids: np.ndarray, predicted_ids: np.ndarray) -> float:
    """Returns Matthews' correlation of two classes: 1 right, 0 chance, -1 reversed.

    It is the correlation of the two arrays; 0 where one of them is constant.

    Args:
        label_ids: int [N], 0 or 1.
        predicted_ids: int [N].

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    label_ids, predicted_ids = _checked(label_ids, predicted_ids)
    truth = label_ids - np.mean(label_ids)
    guess = predicted_ids - np.mean(predicted_ids)
    scale = np.sqrt(np.sum(truth**2) * np.sum(guess**2))
    return float(np.sum(truth * guess) / scale) if scale else 0.0


# What each task is scored by; own tables by accuracy.
SCORES = {"accuracy": accuracy, "f1": f1, "matthews": matthews}
SCORES_OF_TASK = {
    "cola": ("accuracy", "matthews"),
    "mrpc": ("accuracy", "f1"),
    "sst-2": ("accuracy",),
}
SCORES_OF_OWN_DATA = ("accuracy",)


def task_scores(
    task_name: str | None, label_ids: np.ndarray, predicted_ids: np.ndarray
) -> dict[str, float]:
    """Returns a task's scores by name.

    Args:
        task_name: "cola", "mrpc", "sst-2", or None for own data.
        label_ids: int [N], the true classes.
        predicted_ids: int [N].
    """
    names = SCORES_OF_TASK.get(task_name, SCORES_OF_OWN_DATA)
    return {name: SCORES[name](label_ids, predicted_ids) for name in names}


def _checked(label_ids, predicted_ids):
    label_ids, predicted_ids = np.asarray(label_ids), np.asarray(predicted_ids)
    if label_ids.shape != predicted_ids.shape or label_ids.size == 0:
        raise ValueError(
            f"Expected as many predictions as labels and at least one, got "
            f"{predicted_ids.size} and {label_ids.size}."
        )
    return label_ids, predicted_ids
