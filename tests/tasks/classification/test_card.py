"""The report of a classification run."""

import pytest

from bert_tf.fine_tuning import run as fine_tuning_run


@pytest.fixture(scope="module")
def untrained_run(tmp_path_factory, weather_options):
    """A run of three steps, too few to learn, in a folder that says <b>."""
    run_dir = tmp_path_factory.mktemp("runs") / "a<b>"
    options = weather_options(
        run_dir, do_eval=True, num_train_epochs=1.0, learning_rate=1e-5
    )
    fine_tuning_run.run(options)
    return run_dir


@pytest.mark.slow
def test_the_report_has_scores_plots_and_commands(untrained_run):
    text = (untrained_run / "report.html").read_text()
    assert "<title>a&lt;b&gt;</title>" in text
    assert "<td>eval_accuracy</td>" in text
    assert "majority class" in text
    for name in ("curves", "confusion"):
        assert f'alt="{name}"' in text
    assert "bert_tf export --output_dir=&#39;" in text
    assert "http" not in text.replace("data:image/svg+xml", "").split("<pre>")[0]
