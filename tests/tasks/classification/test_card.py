"""Card, report, plot data and TensorBoard's files of a classification run."""

import hashlib

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.training import plot_data


@pytest.fixture(scope="module")
def untrained_run(tmp_path_factory, weather_options):
    """A run of three steps, too few to learn, in a folder that says <b>."""
    run_dir = tmp_path_factory.mktemp("runs") / "a<b>"
    options = weather_options(
        run_dir, do_eval=True, num_train_epochs=1.0, learning_rate=1e-5
    )
    fine_tuning_run.run(options)
    return run_dir


def test_training_and_evaluating_write_a_model_card(untrained_run, weather):
    lines = (untrained_run / "README.md").read_text().splitlines()
    assert "pipeline_tag: text-classification" in lines
    assert "Assigns a text to one of 2 classes." in lines
    assert "| classes | rain, sun |" in lines
    for part, rows in (("train", 24), ("dev", 8)):
        digest = hashlib.sha256((weather / f"{part}.tsv").read_bytes()).hexdigest()
        assert f"| {part} | {part}.tsv | {rows} | {digest} |" in lines
    [accuracy] = [line for line in lines if line.startswith("| eval_accuracy |")]
    scores = (untrained_run / "eval_results.txt").read_text().splitlines()
    expected = float(scores[0].removeprefix("eval_accuracy = "))
    assert accuracy == f"| eval_accuracy | {expected:.4f} |"
    num_wrong = round(8 * (1 - expected))
    [sentence] = [line for line in lines if "evaluated examples are wrong" in line]
    assert sentence.startswith(f"{num_wrong} of 8 ")
    wrong = (untrained_run / "wrong_examples.jsonl").read_text().splitlines()
    assert len(wrong) == num_wrong
    assert "| optimizer steps | 3 |" in lines
    [speed] = [line for line in lines if line.startswith("| training speed |")]
    assert "examples/s" in speed
    [devices] = [line for line in lines if line.startswith("| devices |")]
    assert "CPU" in devices


def test_a_glue_task_names_itself_and_shows_pairs(tmp_path, weather_options):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    for name, rows in (
        ("train", "1\t1\t2\ta b\tb a\n0\t1\t2\tc\td\n"),
        ("dev", "1\t1\t2\tone\tother\n0\t1\t2\tone\tother\n"),
    ):
        (tmp_path / f"{name}.tsv").write_text(header + rows)
    own = ("train_file", "eval_file", "predict_file")
    options = weather_options(
        tmp_path / "run",
        task_name="MRPC",
        data_dir=str(tmp_path),
        do_eval=True,
        train_batch_size=2,
        num_train_epochs=1.0,
        **dict.fromkeys(own),
    )
    fine_tuning_run.run(options)
    text = (tmp_path / "run" / "README.md").read_text()
    assert "Assigns a pair of texts to one of 2 classes (MRPC)." in text
    # One of the two equal pairs is wrong.
    [wrong] = (tmp_path / "run" / "wrong_examples.jsonl").read_text().splitlines()
    assert '"text": "one ||| other"' in wrong
    assert 'metrics: ["accuracy", "f1"]' in text
    assert 'language: ["en"]' in text


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
