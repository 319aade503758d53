import pytest

from bert_tf.training import selection


def test_a_lower_loss_and_a_higher_accuracy_are_better():
    loss = selection.Selection("eval_loss", 0)
    assert [loss.is_best({"eval_loss": x}) for x in (2.0, 1.0, 1.5)] == [1, 1, 0]
    accuracy = selection.Selection("eval_accuracy", 0)
    scores = ({"eval_accuracy": x} for x in (0.5, 0.4, 0.6))
    assert [accuracy.is_best(score) for score in scores] == [1, 0, 1]


def test_stops_after_patience_evaluations_without_a_better_score():
    chosen = selection.Selection("eval_loss", 2)
    stops = []
    for loss in (1.0, 1.1, 1.2):
        chosen.is_best({"eval_loss": loss})
        stops.append(chosen.should_stop)
    assert stops == [False, False, True]


def test_state_is_replayed_from_the_log():
    lines = [
        {"step": 1, "loss": 3.0},
        {"step": 1, "eval_loss": 2.0},
        {"step": 2, "eval_loss": 2.5},
    ]
    replayed = selection.Selection.replayed("eval_loss", 3, lines)
    assert (replayed.best, replayed.num_since_best) == (2.0, 1)


def test_an_unknown_metric_is_refused_with_the_ones_there_are():
    with pytest.raises(ValueError, match=r"eval_f2.*eval_accuracy, eval_loss"):
        selection.Selection("eval_f2", 0).is_best({"eval_loss": 1, "eval_accuracy": 1})
    with pytest.raises(ValueError, match=r"eval_f2.*eval_accuracy, eval_loss"):
        selection.check_metric("eval_f2", ["eval_loss", "eval_accuracy"])
    selection.check_metric("eval_loss", ["eval_loss"])
