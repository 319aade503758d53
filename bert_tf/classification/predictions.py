"""What a model says about each example, and the files that hold it."""

import json
import os
from collections.abc import Sequence

import numpy as np

from bert_tf import files

RELEASE_FILE = "test_results.tsv"
JSON_LINES_FILE = "predictions.jsonl"


def prediction(probabilities: np.ndarray, labels: Sequence[str]) -> dict:
    """Returns the answer for one example.

    Args:
        probabilities: float [L].
        labels: names of the L classes.

    Returns:
        `label`: the likeliest class; `probabilities`: each class's, by name.
    """
    by_name = {
        label: float(value) for label, value in zip(labels, probabilities, strict=True)
    }
    return {"label": labels[int(np.argmax(probabilities))], "probabilities": by_name}


def write_predictions(
    output_dir: str,
    guids: Sequence[str],
    probabilities: np.ndarray,
    labels: Sequence[str],
) -> list[str]:
    """Writes `test_results.tsv` and `predictions.jsonl`; returns their paths.

    The first is the release's: no header, a row an example, a probability for each
    class in the order of `labels`, tabs between. The second has one object a line:
    `{"id": "test-1", "label": "0", "probabilities": {"0": 0.75, "1": 0.25}}`.

    Args:
        output_dir: an existing folder.
        guids: names of the N examples.
        probabilities: float32 [N, L].
        labels: names of the L classes.

    Raises:
        OSError: a file cannot be written.
    """
    release_path = os.path.join(output_dir, RELEASE_FILE)
    with files.complete_or_absent(release_path) as file:
        for row in probabilities:
            file.write("\t".join(str(value) for value in row) + "\n")
    json_path = os.path.join(output_dir, JSON_LINES_FILE)
    with files.complete_or_absent(json_path) as file:
        for guid, row in zip(guids, probabilities, strict=True):
            record = {"id": guid} | prediction(row, labels)
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return [release_path, json_path]
