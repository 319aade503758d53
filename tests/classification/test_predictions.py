import json

import numpy as np
import pytest

from bert_tf.classification import predictions

PROBABILITIES = np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)
ANSWERS = [predictions.prediction(row, ["rain", "sun"]) for row in PROBABILITIES]


def test_a_prediction_names_its_class_and_all_probabilities():
    assert predictions.prediction(PROBABILITIES[0], ["rain", "sun"]) == {
        "label": "sun",
        "probabilities": {"rain": 0.25, "sun": 0.75},
    }


def test_the_files_hold_every_example_in_order(tmp_path):
    paths = predictions.write_predictions(str(tmp_path), ["test-1", "été"], ANSWERS)
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
        predictions.write_predictions(str(tmp_path), ["one"], ANSWERS)
    assert not (tmp_path / "predictions.jsonl").exists()
