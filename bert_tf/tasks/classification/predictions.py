"""Predictions: the answer for each example, and the files with all answers."""

import json
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.modeling import classifier
from bert_tf.modeling import output_activation
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import task as task_module
from bert_tf.training import result_files

RELEASE_FILE = "test_results.tsv"
JSON_LINES_FILE = "predictions.jsonl"
TABLE_FILE = "predictions.csv"
DEFAULT_THRESHOLD = 0.5
# The GLUE server accepts answers for STS-B in this range only.
_SUBMITTED_RANGE = (0.0, 5.0)


def answers_of(logits: np.ndarray, task: task_module.Task) -> list[dict[str, Any]]:
    """Returns the answer for each example.

    Args:
        logits: float32 [N, C].
        task: of the model.

    Returns:
        One dictionary per example. For one class: `label`, and `probabilities` by
        class. For several classes: `labels`, the classes whose probability reaches the
        threshold, and `probabilities`. For regression: `value`.
    """
    found = classifier.MODELS[task.label_kind].answers(logits)
    if task.label_kind == label_kinds.REGRESSION:
        return [{"value": float(value)} for value in predicted_of(logits, task)]
    rows = np.asarray(found["probabilities"])
    if task.label_kind == label_kinds.SINGLE_LABEL:
        return [prediction(row, task.labels) for row in rows]
    chosen = predicted_of(logits, task)
    return [
        {
            "labels": [task.labels[index] for index in np.flatnonzero(row_chosen)],
            "probabilities": _by_name(row, task.labels),
        }
        for row, row_chosen in zip(rows, chosen, strict=True)
    ]


def predicted_of(logits: np.ndarray, task: task_module.Task) -> np.ndarray:
    """Returns the predictions in the format of the column of labels.

    Returns:
        For one class int [N], for several int32 [N, C], for regression float32 [N].
    """
    if task.label_kind == label_kinds.REGRESSION:
        values = np.asarray(logits)[:, 0]
        return np.asarray(output_activation.apply(values, task.output_activation))
    if task.label_kind == label_kinds.SINGLE_LABEL:
        return np.argmax(logits, axis=-1)
    threshold = DEFAULT_THRESHOLD if task.threshold is None else task.threshold
    found = classifier.BertMultiLabelClassifier.answers(logits)
    return (np.asarray(found["probabilities"]) >= threshold).astype(np.int32)


def prediction(probabilities: np.ndarray, labels: Sequence[str]) -> dict[str, Any]:
    """Returns the answer for one example with one class.

    Args:
        probabilities: float [C].
        labels: names of the C classes.

    Returns:
        `label`: the most probable class. `probabilities`: by class.
    """
    by_name = _by_name(probabilities, labels)
    return {"label": labels[int(np.argmax(probabilities))], "probabilities": by_name}


def label_text(answer: Mapping) -> str:
    """Returns the answer in the format of a label: a class, several, or a number."""
    if "value" in answer:
        return f"{answer['value']:.3f}"
    return answer["label"] if "label" in answer else ", ".join(answer["labels"])


def write_predictions(
    output_dir: str,
    guids: Sequence[str],
    answers: Sequence[Mapping],
    *,
    part: str = "test",
    suffix: str = "",
) -> list[str]:
    """Writes `test_results.tsv` and `predictions.jsonl`; returns their paths.

    The first file has the release's format: no header, one line per example, and the
    probabilities in the order of the labels (or one number), separated by tabs. The
    second file has one object per line, such as
    `{"id": "test-1", "label": "0", "probabilities": {"0": 0.75, "1": 0.25}}`.

    Args:
        output_dir: an existing folder.
        guids: names of the N examples.
        answers: returned by `answers_of`.
        part: name of the set. Its suffix after "test" is added to the file names.
        suffix: also added to the file names; see `result_files.suffix_of`.

    Raises:
        OSError: a file cannot be written.
    """
    suffix = part.removeprefix("test") + suffix
    release_file = result_files.with_suffix(RELEASE_FILE, suffix)
    release_path = os.path.join(output_dir, release_file)
    with files.complete_or_absent(release_path) as file:
        for answer in answers:
            values = answer.get("probabilities", {"": answer.get("value")}).values()
            # The release wrote the shortest digits that identify a float32.
            file.write("\t".join(str(np.float32(value)) for value in values) + "\n")
    json_lines_file = result_files.with_suffix(JSON_LINES_FILE, suffix)
    json_path = os.path.join(output_dir, json_lines_file)
    with files.complete_or_absent(json_path) as file:
        for guid, answer in zip(guids, answers, strict=True):
            record = {"id": guid} | dict(answer)
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return [release_path, json_path]


def cells_of(answer: Mapping, task: task_module.Task) -> dict[str, str]:
    """Returns an answer as cells of a table, by column.

    For one class: `predicted_label` and its `probability`. For several classes:
    `predicted_labels`, joined as in the training table, and `probability NAME` of each
    class. For regression: `predicted_value`.
    """
    if "value" in answer:
        return {"predicted_value": f"{answer['value']:.6g}"}
    probabilities = answer["probabilities"]
    if "label" in answer:
        label = answer["label"]
        return {"predicted_label": label, "probability": f"{probabilities[label]:.4f}"}
    joined = (task.label_separator or ",").join(answer["labels"])
    return {"predicted_labels": joined} | {
        f"probability {name}": f"{value:.4f}" for name, value in probabilities.items()
    }


def write_submission(
    path: str, indices: Sequence[str | None], answers: Sequence[Mapping]
) -> str:
    """Writes a file for the GLUE server: `index`, tab, `prediction`. Returns `path`.

    Args:
        path: of the file, such as "MNLI-m.tsv". The server requires its names.
        indices: index of each row in the test file. None: its number, from 0.
        answers: returned by `answers_of`.

    Raises:
        OSError: the file cannot be written.
    """
    with files.complete_or_absent(path) as file:
        file.write("index\tprediction\n")
        for number, (index, answer) in enumerate(zip(indices, answers, strict=True)):
            text = label_text(answer)
            if "value" in answer:
                text = f"{np.clip(answer['value'], *_SUBMITTED_RANGE):.3f}"
            file.write(f"{number if index is None else index}\t{text}\n")
    return path


def _by_name(probabilities, labels):
    return {
        label: float(value) for label, value in zip(labels, probabilities, strict=True)
    }
