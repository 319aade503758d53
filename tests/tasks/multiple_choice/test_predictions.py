import numpy as np
import pytest

from bert_tf.tasks.multiple_choice import predictions
from bert_tf.tasks.multiple_choice import scores


def test_an_answer_has_all_probabilities():
    answer = predictions.prediction(
        np.array([0.25, 0.75], "float32"), ("sits", "läuft")
    )
    assert answer == {
        "label": "1",
        "ending": "läuft",
        "probabilities": {"0": 0.25, "1": 0.75},
    }
    assert predictions.cells(answer) == {
        "predicted_label": "1",
        "predicted_ending": "läuft",
        "probability": "0.7500",
    }
    # The first of equals.
    assert predictions.prediction(np.array([0.5, 0.5]), ("a", "b"))["label"] == "0"


def test_the_release_has_a_line_of_probabilities_per_example():
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5]], "float32")
    lines = list(predictions.release_lines(probabilities))
    assert lines == ["0.25\t0.75\n", "0.5\t0.5\n"]


def test_probabilities_of_other_endings_are_refused():
    with pytest.raises(ValueError, match="each of the 3 endings, got 2"):
        predictions.prediction(np.array([0.5, 0.5]), ["a", "b", "c"])


def test_accuracy_is_the_share_of_right_choices():
    assert scores.accuracy([0, 1, 2, 3], [0, 1, 3, 2]) == 0.5


@pytest.mark.parametrize("labels, predicted", [([], []), ([1], [1, 2])])
def test_nothing_or_unequal_numbers_are_refused(labels, predicted):
    with pytest.raises(ValueError, match="as many predictions as labels"):
        scores.accuracy(labels, predicted)
