"""Predictions: the answer for each example, as JSON and as cells of a table."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

TABLE_FILE = "test_results.tsv"


def prediction(probabilities: np.ndarray, endings: Sequence[str]) -> dict[str, Any]:
    """Returns the answer for one example.

    Args:
        probabilities: float [C].
        endings: C texts.

    Returns:
        `label`: number of the most probable ending, as a string like all labels.
        `ending`: its text. `probabilities`: by number.
    """
    chosen = int(np.argmax(probabilities))
    by_number = {str(i): float(value) for i, value in enumerate(probabilities)}
    return {
        "label": str(chosen),
        "ending": endings[chosen],
        "probabilities": by_number,
    }


def release_lines(probabilities: np.ndarray) -> Iterator[str]:
    """Yields the lines of `test_results.tsv`.

    The file has the format of the release's run_classifier.py: no header, one line per
    example, and the probabilities of the endings, separated by tabs.

    Args:
        probabilities: float32 [N, C].
    """
    for row in probabilities:
        yield "\t".join(str(value) for value in row) + "\n"


def cells(answer: Mapping[str, Any]) -> dict[str, str]:
    """Returns the columns of an answer in `predictions.csv`.

    Args:
        answer: see `prediction`.
    """
    return {
        "predicted_label": answer["label"],
        "predicted_ending": answer["ending"],
        "probability": f"{max(answer['probabilities'].values()):.4f}",
    }
