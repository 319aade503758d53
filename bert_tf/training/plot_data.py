"""What the plots of a run need besides its metrics: plot_data.json in its folder.

| key | value |
|---|---|
| `baselines` | name of a score -> `name` and `value` of the simplest prediction |
| `confusion` | `labels`, and `counts`: rows are true classes, columns predicted ones |
| `calibration` | bins of confidence, each with `count`, `confidence`, `accuracy` |
| `lengths` | `edges` and `counts` of a histogram, and the `limit` of the lengths |

Shape letters: N examples, C classes.
"""

import json
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import files
from bert_tf import json_values
from bert_tf.training import result_files
from bert_tf.training import run_folder

FILE = "plot_data.json"
MAJORITY_CLASS = "majority class"
NUM_CALIBRATION_BINS = 10
_NUM_LENGTH_BINS = 30
_NUMBER = int | float | None
_SHAPE = {
    "baselines?": {str: {"name": str, "value": _NUMBER}},
    "confusion?": {"labels": [str], "counts": [[int]]},
    "calibration?": [{"count": int, "confidence": _NUMBER, "accuracy": _NUMBER}],
    "lengths?": {"edges": [_NUMBER], "counts": [int], "limit": int},
}


def read(run_dir: str) -> dict[str, Any]:
    """Returns the content of plot_data.json; empty if a run has none.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged.
    """
    path = os.path.join(run_dir, FILE)
    if not files.exists(path):
        return {}
    return files.read_json(
        path, advice="remove it; an evaluation writes it again", shape=_SHAPE
    )


def update(
    folder: run_folder.RunFolder,
    values: Mapping[str, Any],
    data_set: result_files.DataSet | None = None,
) -> None:
    """Replaces values in plot_data.json. Baselines of other scores are kept.

    Args:
        folder: of the run.
        values: by key; see the module.
        data_set: what was evaluated. Nothing is written if it is not the run's own.
    """
    if not is_written(folder, data_set):
        return
    merged = read(folder.path)
    baselines = merged.get("baselines", {}) | values.get("baselines", {})
    merged |= {**values, "baselines": baselines}
    text = json.dumps(json_values.with_null(merged), indent=1, ensure_ascii=False)
    with files.complete_or_absent(os.path.join(folder.path, FILE)) as file:
        file.write(text + "\n")


def is_written(
    folder: run_folder.RunFolder, data_set: result_files.DataSet | None
) -> bool:
    """Returns whether `update` writes values of a data set, as only the chief does."""
    if data_set is None or not folder.is_written:
        return folder.is_written
    return not result_files.suffix_of(
        folder.path, run_folder.EVAL_RESULTS_FILE, data_set
    )


def baseline(
    name: str, value: float, *, perfect: float | None = None
) -> dict[str, Any]:
    """Returns an entry of `baselines`.

    Args:
        name: of the simplest prediction.
        value: its score.
        perfect: the best possible score, if it is not 1.
    """
    entry = {"name": name, "value": float(value)}
    return entry if perfect is None else entry | {"perfect": perfect}


def confusion(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, labels: Sequence[str]
) -> dict[str, Any]:
    """Returns the confusion matrix.

    Args:
        truth: int [N].
        predicted: int [N].
        labels: names of the C classes.
    """
    counts = np.zeros((len(labels), len(labels)), np.int64)  # [C, C]
    np.add.at(counts, (np.asarray(truth), np.asarray(predicted)), 1)
    return {"labels": list(labels), "counts": counts.tolist()}


def calibration(
    confidences: npt.ArrayLike, is_correct: npt.ArrayLike
) -> list[dict[str, Any]]:
    """Returns accuracy and mean confidence in bins of equal width, without empty ones.

    Args:
        confidences: float [N], the probability of the predicted class.
        is_correct: bool [N].
    """
    sure, correct = np.asarray(confidences, np.float64), np.asarray(is_correct, bool)
    bins = np.minimum(
        (sure * NUM_CALIBRATION_BINS).astype(int), NUM_CALIBRATION_BINS - 1
    )
    return [
        {
            "count": int(np.sum(bins == number)),
            "confidence": float(np.mean(sure[bins == number])),
            "accuracy": float(np.mean(correct[bins == number])),
        }
        for number in np.unique(bins)
    ]


def calibration_of_logits(
    logits: np.ndarray, truth: npt.ArrayLike
) -> list[dict[str, Any]]:
    """Returns the calibration of a model that predicts one of C classes.

    Args:
        logits: float32 [N, C].
        truth: int [N], the true classes.
    """
    # The largest probability of a softmax. The largest logit is subtracted, so that
    # its exponential is 1.
    highest = np.max(logits, axis=-1, keepdims=True)
    confidences = 1 / np.sum(np.exp(logits - highest), axis=-1)
    return calibration(confidences, np.argmax(logits, axis=-1) == np.asarray(truth))


def lengths(num_pieces: npt.ArrayLike, limit: int) -> dict[str, Any]:
    """Returns a histogram of lengths.

    Args:
        num_pieces: int [N], word pieces of each example before it is truncated or
            divided into windows, with [CLS] and [SEP].
        limit: `max_seq_length`.
    """
    pieces = np.asarray(num_pieces, np.int64)
    width = max(1, -(-int(pieces.max() + 1) // _NUM_LENGTH_BINS))
    edges = np.arange(0, pieces.max() + width + 1, width)
    counts, _ = np.histogram(pieces, edges)
    return {"edges": edges.tolist(), "counts": counts.tolist(), "limit": int(limit)}
