"""Scores of each class, and which classes are confused.

Shape letters: N examples, C classes.
"""

import os
from collections.abc import Sequence

import numpy as np

from bert_tf import files

FILE = "eval_classes.txt"
# A matrix with more classes does not fit on a screen.
MAX_CLASSES_IN_MATRIX = 20
MAX_CONFUSIONS = 10
_HEAD = ("class", "precision", "recall", "F1", "support")


def table(truth: np.ndarray, predicted: np.ndarray, labels: Sequence[str]) -> str:
    """Returns precision, recall, F1 and support of each class, and the confusions.

    A score of 0 / 0 is 0. The last line has the mean over the classes. If each example
    has one class, the confusion matrix follows: rows are the true classes, columns the
    predicted ones. With more than `MAX_CLASSES_IN_MATRIX` classes, the most frequent
    confusions follow instead.

    Args:
        truth: int [N], the true classes. Or [N, C] with 1 for each class of an example.
        predicted: int, of the same shape.
        labels: names of the C classes.
    """
    is_single = truth.ndim == 1
    classes = np.arange(len(labels))
    has, says = truth, predicted
    if is_single:
        has, says = truth[:, np.newaxis] == classes, predicted[:, np.newaxis] == classes
    scores = _scores(has.astype(bool), says.astype(bool))  # [C, 4]
    rows = [
        _row(name, values, int(values[3]))
        for name, values in zip(labels, scores, strict=True)
    ]
    rows.append(_row("mean", np.mean(scores, axis=0), len(truth)))
    lines = _aligned([_HEAD, *rows])
    if is_single:
        matrix = np.zeros((len(labels), len(labels)), np.int64)
        np.add.at(matrix, (truth, predicted), 1)
        lines += ["", *_confusions(matrix, labels)]
    return "\n".join(lines)


def write(output_dir: str, name: str, text: str) -> str:
    """Writes the tables of an evaluation; returns the path.

    Args:
        output_dir: folder of the run.
        name: name of the file.
        text: one or several results of `table`.

    Raises:
        OSError: the file cannot be written.
    """
    path = os.path.join(output_dir, name)
    with files.complete_or_absent(path) as file:
        file.write(text + "\n")
    return path


def _scores(has, says):
    """Returns float [C, 4]: precision, recall, F1 and support of each class."""
    found = np.sum(has & says, axis=0)
    support, guessed = np.sum(has, axis=0), np.sum(says, axis=0)
    precision = found / np.maximum(guessed, 1)
    recall = found / np.maximum(support, 1)
    f1 = 2 * found / np.maximum(support + guessed, 1)
    return np.stack([precision, recall, f1, support], axis=1)


def _row(name, values, support):
    return (name, *(f"{value:.4f}" for value in values[:3]), str(support))


def _confusions(matrix, labels):
    if len(labels) <= MAX_CLASSES_IN_MATRIX:
        rows = [
            (label, *map(str, counts))
            for label, counts in zip(labels, matrix.tolist(), strict=True)
        ]
        return _aligned([("true \\ predicted", *labels), *rows])
    wrong = [
        (count, true, guess)
        for (true, guess), count in np.ndenumerate(matrix)
        if count and true != guess
    ]
    wrong.sort(key=lambda found: (-found[0], *found[1:]))
    shown = [
        (labels[true], labels[guess], str(count))
        for count, true, guess in wrong[:MAX_CONFUSIONS]
    ]
    return _aligned([("true", "predicted", "examples"), *shown])


def _aligned(rows):
    """Returns lines of columns; all but the first are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *map(str.rjust, row[1:], widths[1:]),
            ]
        ).rstrip()
        for row in rows
    ]
