"""Regression and several classes from tables to answers; long texts in windows."""

import json

import numpy as np
import pytest

from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.serving import predictors
from tests import runs

pytestmark = pytest.mark.slow

OWN_FILES = ("train_file", "eval_file", "predict_file")


def answers_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def weather_table(tmp_path_factory, weather):
    """Returns the path of the weather's training table with other labels."""
    folder = tmp_path_factory.mktemp("tables")

    def write(name, label_of):
        header, *rows = (weather / "train.tsv").read_text().splitlines()
        texts = [row.split("\t") for row in rows]
        lines = [f"{text}\t{label_of(text, label)}" for text, label in texts]
        (folder / name).write_text("\n".join([header, *lines]) + "\n")
        return str(folder / name)

    return write


@pytest.fixture(scope="module")
def number_run(tmp_path_factory, weather_options, weather_table):
    """Folder of a run that learned 2 for rain and -1 for sun."""
    run_dir = tmp_path_factory.mktemp("runs") / "numbers"
    table = weather_table("numbers.tsv", lambda _, label: {"rain": 2, "sun": -1}[label])
    files = dict.fromkeys(("train_file", "eval_file"), table)
    options = weather_options(
        run_dir,
        do_eval=True,
        do_predict=True,
        regression=True,
        learning_rate=3e-3,
        **files,
    )
    fine_tuning_run.run(options)
    return run_dir


def test_a_number_is_learned_scored_and_written(number_run):
    results = runs.scores(number_run)
    assert results["eval_pearson"] > 0.95
    assert results["eval_spearman"] > 0.8
    assert results["eval_loss"] < 0.3
    answers = answers_in(number_run / "predictions.jsonl")
    assert [set(answer) for answer in answers] == [{"id", "value"}] * 5
    np.testing.assert_allclose(
        [answer["value"] for answer in answers], [2, -1, 2, -1, 2], atol=1
    )
    columns = np.loadtxt(number_run / "test_results.tsv", ndmin=1)
    np.testing.assert_allclose(columns, [a["value"] for a in answers], rtol=1e-6)
    task = json.loads((number_run / "task.json").read_text())
    assert (task["labels"], task["label_kind"]) == ([], "regression")
    card = (number_run / "README.md").read_text()
    assert "Predicts a number for a text. An answer counts as wrong if" in card


@pytest.fixture(scope="module")
def several_run(tmp_path_factory, weather_options, weather_table):
    """Folder of a multi-label run: rain, and cloud where the text mentions it."""
    run_dir = tmp_path_factory.mktemp("runs") / "several"

    def labels(text, label):
        found = ["rainy"] if label == "rain" else []
        return "; ".join([*found, *(["cloudy"] if "cloud" in text else [])])

    table = weather_table("several.tsv", labels)
    options = weather_options(
        run_dir,
        do_eval=True,
        do_predict=True,
        label_separator=";",
        class_weights="balanced",
        learning_rate=4e-3,
        num_train_epochs=40.0,
        **dict.fromkeys(("train_file", "eval_file"), table),
    )
    fine_tuning_run.run(options)
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
    answers = answers_in(several_run / "predictions.jsonl")
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
        init_checkpoint=rotation.latest(str(several_run)),
    )
    with pytest.raises(ValueError, match="multi_label labels, but the data has single"):
        fine_tuning_run.run(options)


@pytest.fixture(scope="module")
def long_table(tmp_path_factory):
    """Texts whose class appears at the end, beyond 16 pieces."""
    path = tmp_path_factory.mktemp("long") / "long.tsv"
    filling = "a " * 24
    rows = [
        f"{filling}{word} and {word}\t{label}"
        for word, label in (("wet", "rain"), ("dry", "sun")) * 8
    ]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return str(path)


def test_the_end_of_a_long_text_is_read_only_in_windows(
    tmp_path, weather_options, long_table
):
    spread = {}
    for doc_stride in (0, 10):
        run_dir = tmp_path / str(doc_stride)
        options = weather_options(
            run_dir,
            do_eval=True,
            do_predict=True,
            max_seq_length=16,
            doc_stride=doc_stride,
            learning_rate=1e-3,
            num_train_epochs=1.0,
            **dict.fromkeys(OWN_FILES, long_table),
        )
        fine_tuning_run.run(options)
        answers = answers_in(run_dir / "predictions.jsonl")
        assert len(answers) == 16
        # The texts differ only at the end.
        values = [answer["probabilities"]["sun"] for answer in answers]
        spread[doc_stride] = max(values) - min(values)
    assert spread[0] < 1e-6
    assert spread[10] > 1e-5
    [answer] = predictors.load(str(run_dir)).predict(["a " * 24 + "wet and wet"])
    for name, value in answers[0]["probabilities"].items():
        assert answer["probabilities"][name] == pytest.approx(value, abs=1e-5)


def test_windows_of_a_text_count_together_as_one_example(
    tmp_path, weather_options, long_table
):
    options = weather_options(
        tmp_path, max_seq_length=16, doc_stride=10, train_file=long_table
    )
    one = fine_tuning_run.Run(options)
    rows = one.task.features("train")
    assert len(rows.example_numbers) > 16
    sums = np.bincount(rows.example_numbers, rows.columns["example_weights"])
    np.testing.assert_allclose(sums, 1, rtol=1e-6)
    # An epoch has every window once.
    assert one.trainer.num_train_steps == int(len(rows.example_numbers) / 8 * 20)
