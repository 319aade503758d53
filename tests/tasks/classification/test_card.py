"""Card, report, plot data and TensorBoard's files of a classification run."""

import pytest
import tensorflow as tf

from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.training import plots


@pytest.fixture(scope="module")
def untrained_run(tmp_path_factory, weather_options):
    """A run of three steps, too few to learn, in a folder that says <b>."""
    run_dir = tmp_path_factory.mktemp("runs") / "a<b>"
    options = weather_options(
        run_dir, do_eval=True, num_train_epochs=1.0, learning_rate=1e-5
    )
    fine_tuning_run.run(options)
    return run_dir


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


def test_the_report_has_scores_plots_and_commands(untrained_run):
    text = (untrained_run / "report.html").read_text()
    assert "<title>a&lt;b&gt;</title>" in text
    assert "<td>eval_accuracy</td>" in text
    assert "majority class" in text
    for name in ("curves", "confusion", "calibration", "lengths"):
        assert f'alt="{name}"' in text
    assert "bert_tf export --output_dir=&#39;" in text
    assert "http" not in text.replace("data:image/svg+xml", "").split("<pre>")[0]


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "plot_data.json").write_text('{"confusion": 3}')
    with pytest.raises(ValueError, match=r"plot_data\.json.*remove it"):
        plots.read_data(str(tmp_path))


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
