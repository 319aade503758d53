import numpy as np
import pytest

from bert_tf.tasks.classification import scores

# True and predicted classes: 3 true positives, 1 false, 2 missed, 4 true negatives.
TRUE = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
PREDICTED = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0])


# Two examples of three classes: 2 found, 1 missed, 1 too many.
INDICATORS = np.array([[1, 1, 0], [0, 1, 0]])
CHOSEN = np.array([[1, 1, 0], [1, 0, 0]])
NUMBERS = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "score, truth, predicted, expected",
    [
        (scores.accuracy, TRUE, PREDICTED, 0.7),
        (scores.f1, TRUE, PREDICTED, 2 * 3 / (2 * 3 + 1 + 2)),
        (scores.f1, TRUE, np.zeros(10, int), 0.0),  # Nothing found.
        # (3 · 4 - 1 · 2) / sqrt(4 · 5 · 5 · 6)
        (scores.matthews, TRUE, PREDICTED, 10 / np.sqrt(600)),
        (scores.matthews, TRUE, np.zeros(10, int), 0.0),  # A constant says nothing.
        (scores.matthews, TRUE, TRUE, 1.0),
        (scores.matthews, TRUE, 1 - TRUE, -1.0),
        # Gorodkin's: c = 2 hits of s = 4; truth 2, 1, 1 and guesses 1, 2, 1 of the
        # classes: (c s - 5) / sqrt((16 - 6) (16 - 6)).
        (scores.matthews, np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]), 0.7),
        (scores.accuracy, INDICATORS, CHOSEN, 0.5),  # All decisions have to be right.
        (scores.micro_f1, INDICATORS, CHOSEN, 2 * 2 / (2 * 2 + 1 + 1)),
        # Classes: 2/3, 2/3, and 0 for the one that never occurs and is never predicted.
        (scores.macro_f1, INDICATORS, CHOSEN, (2 / 3 + 2 / 3 + 0) / 3),
        (scores.pearson, NUMBERS, [2.0, 4.0, 6.0], 1.0),
        (scores.pearson, NUMBERS, [0.0, 0.0, 3.0], np.sqrt(3) / 2),
        (scores.spearman, NUMBERS, [1.0, 10.0, 100.0], 1.0),  # Only the order counts.
        # Equal ones share ranks.
        (scores.spearman, NUMBERS, [5.0, 5.0, 1.0], -np.sqrt(3) / 2),
        (scores.pearson, NUMBERS, [2.0, 2.0, 2.0], 0.0),  # A constant says nothing.
        (scores.spearman, NUMBERS, [2.0, 2.0, 2.0], 0.0),
    ],
)
def test_a_score_has_its_value(score, truth, predicted, expected):
    assert score(truth, np.array(predicted)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "task_name, kind, truth, names",
    [
        ("cola", "single_label", TRUE, {"accuracy", "matthews"}),
        ("mrpc", "single_label", TRUE, {"accuracy", "f1"}),
        ("qqp", "single_label", TRUE, {"accuracy", "f1"}),
        ("mnli", "single_label", TRUE, {"accuracy"}),
        (None, "single_label", TRUE, {"accuracy"}),
        (None, "multi_label", INDICATORS, {"accuracy", "macro_f1", "micro_f1"}),
        (None, "regression", np.array([1.0, 2.0]), {"pearson", "spearman"}),
    ],
)
def test_a_task_has_its_scores(task_name, kind, truth, names):
    assert set(scores.task_scores(task_name, truth, truth, kind=kind)) == names


@pytest.mark.parametrize("predicted", [np.array([1]), np.array([], int)])
def test_arrays_of_other_lengths_are_refused(predicted):
    with pytest.raises(ValueError, match="as many predictions as labels"):
        scores.accuracy(TRUE if predicted.size else predicted, predicted)
