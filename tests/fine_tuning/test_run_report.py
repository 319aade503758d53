import pytest

from bert_tf.fine_tuning import run_report


@pytest.mark.parametrize(
    "name, score, baseline, expected",
    [
        ("eval_accuracy", 0.505, 0.5, "not learned"),  # Within the margin.
        ("eval_accuracy", 0.6, 0.5, ""),
        ("eval_masked_lm_loss", 5.9, 6.0, "not learned"),  # A loss should be lower.
        ("eval_masked_lm_loss", 4.0, 6.0, ""),
        ("eval_perplexity", 400.0, 300.0, "not learned"),
        ("eval_f1", 50.5, 50.0, "not learned"),  # SQuAD's scores are percentages.
        ("eval_f1", 52.0, 50.0, ""),
        ("eval_f1", 0.1, None, ""),  # Nothing to compare with.
    ],
)
def test_a_score_must_be_clearly_better_than_its_baseline(
    name, score, baseline, expected
):
    assert run_report.verdict(name, score, baseline) == expected


def test_a_percentage_below_one_is_measured_by_its_scale():
    assert run_report.verdict("eval_f1", 0.8, 0.0, perfect=100) == "not learned"
    assert run_report.verdict("eval_f1", 2.5, 0.0, perfect=100) == ""
    # In a corpus of ten passages, any order has them all among the first ten.
    assert run_report.verdict("eval_recall_at_10", 1.0, 1.0) == ""
