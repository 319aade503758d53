"""Plot data, the report and TensorBoard's files of a classification run."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.training import plot_data


@pytest.fixture(scope="module")
def untrained_run(tmp_path_factory, weather_options):
    """A run of three steps, which has learned nothing, in a folder that says <b>."""
    run_dir = tmp_path_factory.mktemp("runs") / "a<b>"
    options = weather_options(
        run_dir, do_eval=True, num_train_epochs=1.0, learning_rate=1e-6
    )
    fine_tuning_run.run(options)
    return run_dir


def test_an_evaluation_writes_what_the_plots_need(untrained_run):
    data = plot_data.read(str(untrained_run))
    assert data["confusion"]["labels"] == ["rain", "sun"]
    counts = np.array(data["confusion"]["counts"])
    assert sum(one["count"] for one in data["calibration"]) == counts.sum()
    baseline = data["baselines"]["eval_accuracy"]
    assert baseline["name"] == "majority class"
    assert baseline["value"] == counts.sum(axis=1).max() / counts.sum()
    assert data["lengths"]["limit"] == 24
    assert sum(data["lengths"]["counts"]) == 24


def test_the_report_has_scores_plots_and_commands(untrained_run):
    text = (untrained_run / "report.html").read_text()
    assert "<title>a&lt;b&gt;</title>" in text
    assert "<td>eval_accuracy</td>" in text
    assert "majority class" in text
    for name in ("curves", "confusion", "calibration", "lengths"):
        assert f'alt="{name}"' in text
    assert "export_saved_model --output_dir=&#39;" in text
    assert "http" not in text.replace("data:image/svg+xml", "").split("<pre>")[0]


def test_the_report_shows_wrong_examples_with_card_examples_only(
    untrained_run, weather_options
):
    [wrong, *_] = (untrained_run / "wrong_examples.jsonl").read_text().splitlines()
    report, private = untrained_run / "report.html", json.loads(wrong)["text"]
    text = report.read_text()
    assert private not in text
    assert "wrong_examples.jsonl has all of them." in text
    options = weather_options(
        untrained_run, do_train=False, do_eval=True, card_examples=True
    )
    fine_tuning_run.run(options)
    assert private in report.read_text()


def test_an_evaluation_of_other_data_leaves_the_plots_as_they_are(
    untrained_run, weather, weather_options
):
    before = (untrained_run / "plot_data.json").read_bytes()
    options = weather_options(
        untrained_run,
        do_train=False,
        do_eval=True,
        eval_file=str(weather / "train.tsv"),
    )
    fine_tuning_run.evaluate(options)
    assert (untrained_run / "plot_data.json").read_bytes() == before


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "plot_data.json").write_text('{"confusion": 3}')
    with pytest.raises(ValueError, match=r"plot_data\.json.*remove it"):
        plot_data.read(str(tmp_path))


def test_tensorboard_gets_images_and_baselines(untrained_run, run_tool):
    flags = [f"--run_dir={untrained_run}", "--tensorboard"]
    for _ in range(2):  # The second call replaces the files of the first.
        assert run_tool("plot_run", *flags).exit_code == 0
    folder = untrained_run / "plots"
    [events] = folder.glob("events.*")
    tags = {
        (value.tag, value.metadata.plugin_data.plugin_name)
        for record in tf.data.TFRecordDataset(str(events))
        for value in tf.compat.v1.Event.FromString(record.numpy()).summary.value
    }
    assert ("eval_accuracy", "scalars") in tags
    assert ("confusion", "images") in tags


def test_calibration_and_lengths_count_every_example():
    bins = plot_data.calibration([0.5, 0.55, 1.0], [True, False, True])
    assert [one["count"] for one in bins] == [2, 1]
    assert bins[0]["accuracy"] == 0.5
    assert bins[1]["confidence"] == 1.0
    histogram = plot_data.lengths([3, 500, 7], limit=128)
    assert sum(histogram["counts"]) == 3
    assert len(histogram["edges"]) == len(histogram["counts"]) + 1
