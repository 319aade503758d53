import numpy as np
import pytest

from bert_tf.classification import scores

# True and predicted classes: 3 true positives, 1 false, 2 missed, 4 true negatives.
TRUE = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
PREDICTED = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0])


@pytest.mark.parametrize(
    "score, expected",
    [
        (scores.accuracy, 0.7),
        (scores.f1, 2 * 3 / (2 * 3 + 1 + 2)),
        # (3 · 4 - 1 · 2) / sqrt(4 · 5 · 5 · 6)
        (scores.matthews, 10 / np.sqrt(600)),
    ],
)
def test_a_score_has_its_value(score, expected):
    assert score(TRUE, PREDICTED) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "score, predicted, expected",
    [
        (scores.f1, np.zeros(10, int), 0.0),  # Nothing found.
        (scores.matthews, np.zeros(10, int), 0.0),  # A constant says nothing.
        (scores.matthews, TRUE, 1.0),
        (scores.matthews, 1 - TRUE, -1.0),
    ],
)
def test_scores_at_their_ends(score, predicted, expected):
    assert score(TRUE, predicted) == pytest.approx(expected, abs=1e-12)


def test_f1_of_no_positives_at_all_is_0():
    assert scores.f1(np.zeros(3, int), np.zeros(3, int)) == 0.0


@pytest.mark.parametrize(
    "task_name, names",
    [
        ("cola", {"accuracy", "matthews"}),
        ("mrpc", {"accuracy", "f1"}),
        ("sst-2", {"accuracy"}),
        (None, {"accuracy"}),
    ],
)
def test_a_task_has_its_scores(task_name, names):
    assert set(scores.task_scores(task_name, TRUE, PREDICTED)) == names


@pytest.mark.parametrize("predicted", [np.array([1]), np.array([], int)])
def test_arrays_of_other_lengths_are_refused(predicted):
    with pytest.raises(ValueError, match="as many predictions as labels"):
        scores.accuracy(TRUE if predicted.size else predicted, predicted)
