"""Card, report, plot data and TensorBoard's files of a classification run."""

import pytest
import tensorflow as tf

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


@pytest.mark.slow
def test_tensorboard_gets_images_and_baselines(untrained_run, run_tool):
    flags = [f"--run_dir={untrained_run}", "--tensorboard"]
    for _ in range(2):  # The second call replaces the files of the first.
        run_tool("plot_run", *flags)
    folder = untrained_run / "plots"
    [events] = folder.glob("events.*")
    tags = {
        (value.tag, value.metadata.plugin_data.plugin_name)
        for record in tf.data.TFRecordDataset(str(events))
        for value in tf.compat.v1.Event.FromString(record.numpy()).summary.value
    }
    assert ("eval_accuracy", "scalars") in tags
    assert ("confusion", "images") in tags
