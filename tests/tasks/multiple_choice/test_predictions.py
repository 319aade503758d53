import numpy as np

from bert_tf.tasks.multiple_choice import predictions


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
