"""The score of multiple choice: accuracy."""

import numpy as np


def accuracy(label_ids: np.ndarray, predicted_ids: np.ndarray) -> float:
    """Returns the fraction of examples whose correct ending was chosen.

    Args:
        label_ids: int [N], the correct endings.
        predicted_ids: int [N].

    Raises:
        ValueError: the arrays are empty or differ in length.
    """
    label_ids, predicted_ids = np.asarray(label_ids), np.asarray(predicted_ids)
    if label_ids.shape != predicted_ids.shape or label_ids.size == 0:
        raise ValueError(
            "Expected as many predictions as labels, and at least one, got "
            f"{predicted_ids.size} predictions and {label_ids.size} labels."
        )
    return float(np.mean(label_ids == predicted_ids))
