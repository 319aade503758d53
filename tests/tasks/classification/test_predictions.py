import json

import numpy as np
import pytest

from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import task as task_module

PROBABILITIES = np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)
ANSWERS = [
    classification_predictions.prediction(row, ["rain", "sun"]) for row in PROBABILITIES
]


def test_a_prediction_names_its_class_and_all_probabilities():
    assert classification_predictions.prediction(PROBABILITIES[0], ["rain", "sun"]) == {
        "label": "sun",
        "probabilities": {"rain": 0.25, "sun": 0.75},
    }


def test_the_files_hold_every_example_in_order(tmp_path):
    paths = classification_predictions.write_predictions(
        str(tmp_path), ["test-1", "été"], ANSWERS
    )
    assert paths == [
        str(tmp_path / "test_results.tsv"),
        str(tmp_path / "predictions.jsonl"),
    ]
    assert (tmp_path / "test_results.tsv").read_text() == "0.25\t0.75\n0.5\t0.5\n"
    text = (tmp_path / "predictions.jsonl").read_text(encoding="utf-8")
    assert "été" in text
    assert [json.loads(line) for line in text.splitlines()] == [
        {"id": "test-1", "label": "sun", "probabilities": {"rain": 0.25, "sun": 0.75}},
        {"id": "été", "label": "rain", "probabilities": {"rain": 0.5, "sun": 0.5}},
    ]


def test_a_failure_leaves_no_half_written_file(tmp_path):
    with pytest.raises(ValueError, match="zip"):
        classification_predictions.write_predictions(str(tmp_path), ["one"], ANSWERS)
    assert not (tmp_path / "predictions.jsonl").exists()


LOGITS = np.array([[0.0, 0.0], [-2.0, 3.0]], np.float32)
SEVERAL = {"label_kind": "multi_label", "label_separator": ","}


def a_task(**values):
    defaults = {"labels": ("rain", "sun"), "max_seq_length": 8, "do_lower_case": True}
    return task_module.Task(**defaults | values)


def test_several_classes_are_those_at_least_as_likely_as_the_threshold():
    answers = classification_predictions.answers_of(
        LOGITS, a_task(**SEVERAL, threshold=0.5)
    )
    assert [answer["labels"] for answer in answers] == [["rain", "sun"], ["sun"]]
    assert answers[0]["probabilities"] == {"rain": 0.5, "sun": 0.5}
    answers = classification_predictions.answers_of(
        LOGITS, a_task(**SEVERAL, threshold=0.6)
    )
    assert [answer["labels"] for answer in answers] == [[], ["sun"]]


def test_a_number_is_the_logit():
    answers = classification_predictions.answers_of(
        LOGITS[:, 1:], a_task(labels=(), label_kind="regression")
    )
    assert answers == [{"value": 0.0}, {"value": 3.0}]


def test_sets_beside_the_first_have_files_of_their_own(tmp_path):
    paths = classification_predictions.write_predictions(
        str(tmp_path), ["a", "b"], [{"value": 1.5}, {"value": -2.0}], part="test_de"
    )
    assert [path.rsplit("/")[-1] for path in paths] == [
        "test_results_de.tsv",
        "predictions_de.jsonl",
    ]
    assert (tmp_path / "test_results_de.tsv").read_text() == "1.5\n-2.0\n"


@pytest.mark.parametrize(
    "answers, lines",
    [
        (ANSWERS, ["0\tsun", "7\train"]),
        # STS-B's range is 0 to 5.
        ([{"value": 5.25}, {"value": 1.23456}], ["0\t5.000", "7\t1.235"]),
    ],
)
def test_a_submission_is_as_glues_server_takes_it(tmp_path, answers, lines):
    path = str(tmp_path / "X.tsv")
    assert (
        classification_predictions.write_submission(path, [None, "7"], answers) == path
    )
    written = (tmp_path / "X.tsv").read_text().splitlines()
    assert written == ["index\tprediction", *lines]
