"""Regression and several classes from tables to answers; long texts in windows."""

import json

import numpy as np
import pytest

from bert_tf.checkpoints.release import bundle
from bert_tf.fine_tuning import run as fine_tuning_run
from tests import runs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def learn(tmp_path_factory, task_data, weather_options):
    """Learns the weather with other labels; returns the path of the table.

    learn(folder, label_of): `label_of` takes a text and its label.
    """

    def run(run_dir, label_of, **values):
        path = task_data("classification") / "train.tsv"
        header, *rows = path.read_text().splitlines()
        texts = [row.split("\t") for row in rows]
        lines = [f"{text}\t{label_of(text, label)}" for text, label in texts]
        table = tmp_path_factory.mktemp("tables") / "train.tsv"
        table.write_text("\n".join([header, *lines]) + "\n")
        data = dict.fromkeys(("train_file", "eval_file"), str(table))
        options = weather_options(
            run_dir, do_eval=True, do_predict=True, **data, **values
        )
        fine_tuning_run.run(options)
        return str(table)

    return run


NUMBERS = {"regression": True, "learning_rate": 3e-3}


def test_a_number_is_learned_scored_and_written(tmp_path, learn):
    """It learns 2 for rain and -1 for sun."""
    number_run = tmp_path / "run"
    learn(number_run, lambda _, label: {"rain": 2, "sun": -1}[label], **NUMBERS)
    results = runs.scores(number_run)
    assert results["eval_pearson"] > 0.95
    assert results["eval_spearman"] > 0.8
    assert results["eval_loss"] < 0.3
    answers = runs.json_lines(number_run / "predictions.jsonl")
    assert [set(answer) for answer in answers] == [{"id", "value"}] * 5
    np.testing.assert_allclose(
        [answer["value"] for answer in answers], [2, -1, 2, -1, 2], atol=1
    )
    columns = np.loadtxt(number_run / "test_results.tsv", ndmin=1)
    np.testing.assert_allclose(columns, [a["value"] for a in answers], rtol=1e-6)
    task = json.loads((number_run / "task.json").read_text())
    assert (task["labels"], task["label_kind"]) == ([], "regression")
    card = (number_run / "README.md").read_text()
    assert "Predicts a number for a text." in card


@pytest.fixture(scope="module")
def several_run(tmp_path_factory, learn):
    """Folder of a multi-label run: rain, and cloud where the text mentions it."""
    run_dir = tmp_path_factory.mktemp("runs") / "several"

    def labels(text, label):
        names = {"rainy": label == "rain", "cloudy": "cloud" in text}
        return "; ".join(name for name, is_true in names.items() if is_true)

    values = {"label_separator": ";", "class_weights": "balanced"}
    learn(run_dir, labels, learning_rate=4e-3, num_train_epochs=40.0, **values)
    return run_dir


def test_any_number_of_classes_is_learned_scored_and_written(several_run):
    results = runs.scores(several_run)
    assert set(results) == {
        "eval_accuracy",
        "eval_macro_f1",
        "eval_micro_f1",
        "eval_loss",
        "global_step",
        "loss",
    }
    assert results["eval_micro_f1"] > 0.9
    answers = runs.json_lines(several_run / "predictions.jsonl")
    assert [set(answer) for answer in answers] == [
        {"id", "labels", "probabilities"}
    ] * 5
    assert "rainy" in answers[0]["labels"]
    assert answers[1]["labels"] == []  # Neither of them.
    assert list(answers[0]["probabilities"]) == ["cloudy", "rainy"]
    columns = np.loadtxt(several_run / "test_results.tsv")
    assert columns.shape == (5, 2)
    card = (several_run / "README.md").read_text()
    assert "Assigns a text to any number of 2 classes. A class is predicted" in card


def test_a_head_of_several_classes_is_not_read_as_one_of_a_single_class(
    tmp_path, several_run, weather_options
):
    options = weather_options(
        tmp_path,
        do_train=False,
        do_predict=True,
        train_file=None,
        labels="cloudy,rainy",
        init_checkpoint=bundle.latest(str(several_run)),
    )
    with pytest.raises(ValueError, match="multi_label labels, but the data has single"):
        fine_tuning_run.run(options)
