import math

import pytest

from bert_tf.training import options as training_options
from bert_tf.training import selection

NAN = float("nan")


@pytest.mark.parametrize(
    "metric, scores, is_best",
    [
        ("eval_loss", (2.0, 1.0, 1.5), (True, True, False)),  # Lower is better.
        ("eval_perplexity", (9.0, 8.0, 8.5), (True, True, False)),
        ("eval_accuracy", (0.5, 0.4, 0.6), (True, False, True)),  # Higher is better.
        # A tie is no improvement: the earlier checkpoint stays.
        ("eval_loss", (1.0, 1.0), (True, False)),
        ("eval_accuracy", (0.5, 0.6, 0.6), (True, True, False)),
        ("eval_mcc", (-0.2, -0.1, 0.0), (True, True, True)),  # Scores may be negative.
        ("eval_accuracy", (0.0, 0.0), (True, False)),  # The first is best, even at 0.
        # A worse score in between does not lower the bar.
        ("eval_accuracy", (0.6, 0.4, 0.5), (True, False, False)),
        # NaN is worse than every number, also if it comes first.
        ("eval_loss", (NAN, 2.0, NAN, 1.0), (False, True, False, True)),
        ("eval_accuracy", (NAN, 0.0, NAN), (False, True, False)),
        # Infinity is null in metrics.jsonl, which a resumed run reads as NaN.
        ("eval_perplexity", (math.inf, math.inf, 9.0), (False, False, True)),
    ],
)
def test_a_score_is_best_if_it_beats_all_before_it(metric, scores, is_best):
    chosen = selection.Selection(metric, 0)
    assert tuple(chosen.is_best({metric: score}) for score in scores) == is_best
    assert not chosen.should_stop  # Without patience never.


@pytest.mark.parametrize(
    "patience, losses, stops",
    [
        (2, (1.0, 1.1, 1.2), (False, False, True)),
        (2, (1.0, 1.0, 1.0), (False, False, True)),  # A tie uses up patience.
        (2, (1.0, 1.1, 0.9, 1.0, 0.9), (False, False, False, False, True)),
        (1, (1.0, 0.9, 0.9), (False, False, True)),
        (2, (NAN, NAN, 1.0), (False, True, False)),  # NaN uses up patience.
    ],
)
def test_stops_after_patience_evaluations_without_a_better_score(
    patience, losses, stops
):
    chosen = selection.Selection("eval_loss", patience)
    found = []
    for loss in losses:
        chosen.is_best({"eval_loss": loss})
        found.append(chosen.should_stop)
    assert tuple(found) == stops


def test_state_is_replayed_from_the_log():
    lines = [
        {"step": 1, "loss": 3.0},
        {"step": 1, "eval_loss": 2.0},
        {"step": 2, "eval_loss": 2.5},
    ]
    options = training_options.EvaluationOptions(
        eval_every_steps=1, early_stopping_evals=3
    )
    replayed = selection.Selection.replay(options, lines)
    assert (replayed.best, replayed.num_since_best) == (2.0, 1)
    assert replayed.patience == 3


@pytest.mark.parametrize(
    "losses, line",
    [
        ((0.25,), "loss 0.2500 (best so far), f1 0.5000, recall 1.0000"),
        ((0.1, 0.25), "loss 0.2500 (best: 0.1000), f1 0.5000, recall 1.0000"),
        ((NAN,), "loss nan (best: none), f1 0.5000, recall 1.0000"),
    ],
)
def test_an_evaluation_is_one_line_that_says_whether_it_is_the_best(losses, line):
    chosen = selection.Selection("eval_loss", 0)
    for loss in losses:
        scores = {"eval_recall": 1, "eval_f1": 0.5, "eval_loss": loss}
        chosen.is_best(scores)
    assert chosen.line(scores) == line


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"eval_f2.*eval_accuracy, eval_loss"):
        selection.Selection("eval_f2", 0).is_best({"eval_loss": 1, "eval_accuracy": 1})
    with pytest.raises(ValueError, match=r"eval_f2.*eval_accuracy, eval_loss"):
        selection.check_metric("eval_f2", ["eval_loss", "eval_accuracy"])
    selection.check_metric("eval_loss", ["eval_loss"])
