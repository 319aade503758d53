"""Predictions: the answer for each example, and the files with all answers."""

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.data import answer_tables
from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.training import result_files

TABLE_FILE = "test_results.tsv"
JSON_LINES_FILE = "predictions.jsonl"
OWN_TABLE_FILE = "predictions.csv"


def prediction(probabilities: np.ndarray, endings: Sequence[str]) -> dict[str, Any]:
    """Returns the answer for one example.

    Args:
        probabilities: float [C].
        endings: C texts.

    Returns:
        `label`: number of the most probable ending, as a string like all labels.
        `ending`: its text. `probabilities`: by number.

    Raises:
        ValueError: there are not as many probabilities as endings.
    """
    chosen = int(np.argmax(probabilities))
    if len(probabilities) != len(endings):
        raise ValueError(
            f"Expected one probability for each of the {len(endings)} endings, got "
            f"{len(probabilities)}."
        )
    by_number = {str(i): float(value) for i, value in enumerate(probabilities)}
    return {
        "label": str(chosen),
        "ending": endings[chosen],
        "probabilities": by_number,
    }


def write_predictions(
    output_dir: str,
    examples: Sequence[examples_module.ChoiceExample],
    probabilities: np.ndarray,
    *,
    suffix: str = "",
) -> list[str]:
    """Writes `test_results.tsv` and `predictions.jsonl`; returns their paths.

    The first file has the format of the release's run_classifier.py: no header, one
    line per example, and the probabilities of the endings, separated by tabs. The
    second file has one object per line, such as `{"id": "test-1", "label": "0",
    "ending": "sat.", "probabilities": {"0": 0.75, "1": 0.25}}`.

    Args:
        output_dir: an existing folder.
        examples: N examples with C endings each.
        probabilities: float32 [N, C].
        suffix: added to the file names; see `result_files.suffix_of`.

    Raises:
        OSError: a file cannot be written.
    """
    table_path = os.path.join(output_dir, result_files.with_suffix(TABLE_FILE, suffix))
    with files.complete_or_absent(table_path) as file:
        for row in probabilities:
            file.write("\t".join(str(value) for value in row) + "\n")
    json_path = os.path.join(
        output_dir, result_files.with_suffix(JSON_LINES_FILE, suffix)
    )
    with files.complete_or_absent(json_path) as file:
        for example, row in zip(examples, probabilities, strict=True):
            record = {"id": example.guid} | prediction(row, example.endings)
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return [table_path, json_path]


def write_table(
    output_dir: str,
    input_path: str,
    examples: Sequence[examples_module.ChoiceExample],
    probabilities: np.ndarray,
    *,
    header: Sequence[str] = (),
    suffix: str = "",
) -> str:
    """Writes `predictions.csv`, the input with its answers; returns its path.

    Args:
        output_dir: an existing folder.
        input_path: the table of the examples.
        examples: N examples with C endings each.
        probabilities: float32 [N, C].
        header: names of the columns of a file without a header line.
        suffix: added to the file name; see `result_files.suffix_of`.

    Raises:
        OSError: a file cannot be read or written.
    """
    answers = []
    for example, row in zip(examples, probabilities, strict=True):
        found = prediction(row, example.endings)
        answers.append(
            {
                "predicted_label": found["label"],
                "predicted_ending": found["ending"],
                "probability": f"{np.max(row):.4f}",
            }
        )
    return answer_tables.write(
        os.path.join(output_dir, result_files.with_suffix(OWN_TABLE_FILE, suffix)),
        input_path,
        answers,
        names=list(answers[0]),
        header=header or None,
    )
