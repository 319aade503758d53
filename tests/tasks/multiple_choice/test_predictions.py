import json

import numpy as np
import pytest

from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import predictions
from bert_tf.tasks.multiple_choice import scores


def test_both_files_hold_a_row_an_example(tmp_path):
    some = [
        examples_module.ChoiceExample(guid="a", start="He", endings=("sits", "läuft")),
        examples_module.ChoiceExample(guid="b", start="He", endings=("eats", "goes")),
    ]
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5]], "float32")
    paths = predictions.write_predictions(str(tmp_path), some, probabilities)
    assert paths == [
        str(tmp_path / "test_results.tsv"),
        str(tmp_path / "predictions.jsonl"),
    ]
    assert (tmp_path / "test_results.tsv").read_text() == "0.25\t0.75\n0.5\t0.5\n"
    text = (tmp_path / "predictions.jsonl").read_text()
    assert "läuft" in text
    assert [json.loads(line) for line in text.splitlines()] == [
        {
            "id": "a",
            "label": "1",
            "ending": "läuft",
            "probabilities": {"0": 0.25, "1": 0.75},
        },
        {
            "id": "b",
            "label": "0",  # The first of equals.
            "ending": "eats",
            "probabilities": {"0": 0.5, "1": 0.5},
        },
    ]


def test_probabilities_of_other_endings_are_refused():
    with pytest.raises(ValueError, match="each of the 3 endings, got 2"):
        predictions.prediction(np.array([0.5, 0.5]), ["a", "b", "c"])


def test_accuracy_is_the_share_of_right_choices():
    assert scores.accuracy([0, 1, 2, 3], [0, 1, 3, 2]) == 0.5


@pytest.mark.parametrize("labels, predicted", [([], []), ([1], [1, 2])])
def test_nothing_or_unequal_numbers_are_refused(labels, predicted):
    with pytest.raises(ValueError, match="as many predictions as labels"):
        scores.accuracy(labels, predicted)
