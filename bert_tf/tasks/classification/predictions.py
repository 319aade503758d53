"""What a model says about each example, and the files that hold it."""

import json
import os
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf.modeling import classifier
from bert_tf.tasks.classification import label_kinds

RELEASE_FILE = "test_results.tsv"
JSON_LINES_FILE = "predictions.jsonl"
DEFAULT_THRESHOLD = 0.5
# STS-B's answers; GLUE's server takes no others.
_SUBMITTED_RANGE = (0.0, 5.0)


def answers_of(logits: np.ndarray, task) -> list[dict]:
    """Returns the answer for each example.

    Args:
        logits: float32 [N, C].
        task: `task.Task`.

    Returns:
        Dicts. Of one class `label` and `probabilities` by name; of several `labels`,
        those whose probability is at least the threshold, and `probabilities`; of a
        number `value`.
    """
    found = classifier.MODELS[task.label_kind].answers(logits)
    if task.label_kind == label_kinds.REGRESSION:
        return [{"value": float(value)} for value in found["values"]]
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


def predicted_of(logits: np.ndarray, task) -> np.ndarray:
    """Returns what the model says, in the form of the labels' column.

    Returns:
        Of one class int [N]; of several int32 [N, C]; of numbers float32 [N].
    """
    if task.label_kind == label_kinds.REGRESSION:
        return np.asarray(logits)[:, 0]
    if task.label_kind == label_kinds.SINGLE_LABEL:
        return np.argmax(logits, axis=-1)
    threshold = DEFAULT_THRESHOLD if task.threshold is None else task.threshold
    found = classifier.BertMultiLabelClassifier.answers(logits)
    return (np.asarray(found["probabilities"]) >= threshold).astype(np.int32)


def prediction(probabilities: np.ndarray, labels: Sequence[str]) -> dict:
    """Returns the answer for one example that has one class.

    Args:
        probabilities: float [L].
        labels: names of the L classes.

    Returns:
        `label`: the likeliest class; `probabilities`: each class's, by name.
    """
    by_name = _by_name(probabilities, labels)
    return {"label": labels[int(np.argmax(probabilities))], "probabilities": by_name}


def said(answer: Mapping) -> str:
    """Returns an answer as a table's label has it: a class, several, or a number."""
    if "value" in answer:
        return f"{answer['value']:.3f}"
    return answer["label"] if "label" in answer else ", ".join(answer["labels"])


def write_predictions(
    output_dir: str,
    guids: Sequence[str],
    answers: Sequence[Mapping],
    *,
    part: str = "test",
) -> list[str]:
    """Writes `test_results.tsv` and `predictions.jsonl`; returns their paths.

    The first is the release's: no header, a row an example, a probability for each
    class in the order of the labels, tabs between; or one number. The second has one
    object a line, such as
    `{"id": "test-1", "label": "0", "probabilities": {"0": 0.75, "1": 0.25}}`.

    Args:
        output_dir: an existing folder.
        guids: names of the N examples.
        answers: what `answers_of` returned.
        part: the set; its name after "test" becomes a part of the files' names.

    Raises:
        OSError: a file cannot be written.
    """
    suffix = part.removeprefix("test")
    release_path = os.path.join(output_dir, RELEASE_FILE.replace(".", f"{suffix}."))
    with files.complete_or_absent(release_path) as file:
        for answer in answers:
            values = answer.get("probabilities", {"": answer.get("value")}).values()
            # As float32, whose shortest digits the release wrote.
            file.write("\t".join(str(np.float32(value)) for value in values) + "\n")
    json_path = os.path.join(output_dir, JSON_LINES_FILE.replace(".", f"{suffix}."))
    with files.complete_or_absent(json_path) as file:
        for guid, answer in zip(guids, answers, strict=True):
            record = {"id": guid} | dict(answer)
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return [release_path, json_path]


def write_submission(
    path: str, indices: Sequence[str | None], answers: Sequence[Mapping]
) -> str:
    """Writes a file as GLUE's server takes it: `index`, tab, `prediction`.

    Args:
        path: the file, such as "MNLI-m.tsv"; the server wants these names.
        indices: what the test file calls each row; None: its number from 0.
        answers: what `answers_of` returned.

    Returns:
        `path`.

    Raises:
        OSError: it cannot be written.
    """
    with files.complete_or_absent(path) as file:
        file.write("index\tprediction\n")
        for number, (index, answer) in enumerate(zip(indices, answers, strict=True)):
            text = said(answer)
            if "value" in answer:
                text = f"{np.clip(answer['value'], *_SUBMITTED_RANGE):.3f}"
            file.write(f"{number if index is None else index}\t{text}\n")
    return path


def _by_name(probabilities, labels):
    return {
        label: float(value) for label, value in zip(labels, probabilities, strict=True)
    }
