import dataclasses
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.release import bundle
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.serving import export
from tests import runs
from tests.tasks.classification import contract

EVALUATIONS = contract.CONTRACT.evaluations()


def test_both_files_of_predictions_say_the_same(weather_run):
    records = runs.json_lines(weather_run / "predictions.jsonl")
    assert [record["id"] for record in records] == [f"test-{i}" for i in range(1, 6)]
    labels = [record["label"] for record in records]
    assert labels == ["rain", "sun", "rain", "sun", "rain"]
    columns = np.loadtxt(weather_run / "test_results.tsv", delimiter="\t")
    by_name = [[r["probabilities"][name] for name in ("rain", "sun")] for r in records]
    np.testing.assert_allclose(columns, by_name, rtol=1e-6)
    np.testing.assert_allclose(columns.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.slow
def test_a_finished_run_keeps_its_settings_and_results(
    tmp_path, task_data, weather_run, weather_options
):
    def contents():
        names = ("README.md", "model_card.json", "run.json", "task.json")
        names += ("eval_results.txt", "predictions.jsonl")
        return [(weather_run / name).read_bytes() for name in names]

    before = contents()
    same = weather_options(weather_run, eval_batch_size=3, **EVALUATIONS)
    assert fine_tuning_run.Run(same).train()["global_step"] == 60
    assert contents() == before

    other = tmp_path / "other.tsv"
    other.write_text("text\tlabel\nwet and cloud\tsun\n")
    options = weather_options(
        weather_run,
        do_train=False,
        do_eval=True,
        do_predict=True,
        eval_file=str(other),
        predict_file=str(other),
        eval_batch_size=3,
    )
    assert "eval_results-other.txt" in fine_tuning_run.run(options)
    assert contents() == before
    for name in ("predictions-other.jsonl", "test_results-other.tsv"):
        assert len((weather_run / name).read_text().splitlines()) == 1
    run = (weather_run / "run.json").read_text()
    for folder in (tmp_path, task_data("classification")):
        assert str(folder) not in (weather_run / "README.md").read_text() + run


def test_texts_that_are_longer_than_the_model_reads_are_counted(
    weather_run, tmp_path, weather_options, caplog
):
    run = shutil.copytree(weather_run, tmp_path / "run")
    table = tmp_path / "long.tsv"
    table.write_text(f"text\nwet\n{'wet ' * 60}\n")
    options = {"do_train": False, "do_predict": True, "predict_file": str(table)}
    fine_tuning_run.run(weather_options(run, **options))
    assert "1 of 2 examples of test are longer than --max_seq_length=24" in caplog.text
    bert_tf.load(str(run)).predict(["wet " * 60, "wet", "dry"])
    assert "1 of 3 inputs are longer than max_seq_length=24" in caplog.text


@pytest.mark.slow
def test_a_dry_run_of_a_search_estimates_its_first_run(tmp_path, weather_options):
    values = {"do_train": False, "dry_run": True, "sweep": "train_batch_size=8,4"}
    report = fine_tuning_run.run(weather_options(tmp_path / "run", **values))
    assert "steps             60\n" in report  # Of 24 examples, 20 epochs.
    assert report.endswith("This is the first of 2 runs.")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "labels, message",
    [
        ("sun,rain", "in another order: sun, rain; pass --labels=rain,sun"),
        ("Sun,RAIN", "in another order: Sun, RAIN; pass --labels=RAIN,Sun"),
        ("Rain,Sun", None),
        ("wet,dry", "with the labels rain, sun; this run calls them wet, dry"),
    ],
)
def test_the_labels_of_a_fine_tuned_checkpoint_keep_their_order(
    tmp_path, weather_run, weather_options, labels, message, caplog
):
    options = weather_options(
        tmp_path,
        do_train=False,
        do_predict=True,
        train_file=None,
        labels=labels,
        init_checkpoint=bundle.latest(str(weather_run)),
    )
    if message is not None and "order" in message:
        with pytest.raises(ValueError, match=message):
            fine_tuning_run.prepare(options)
        return
    fine_tuning_run.prepare(options)
    assert (message or "") in caplog.text
    assert bool(message) == bool(caplog.text)


def test_training_from_a_head_with_another_order_of_labels_is_reported(
    tmp_path, weather_run, weather_options, caplog
):
    for labels, is_reported in {"rain,sun": False, "sun,rain": True}.items():
        options = weather_options(
            tmp_path, labels=labels, init_checkpoint=bundle.latest(str(weather_run))
        )
        fine_tuning_run.prepare(options)
        message = "not with --task_name). Otherwise the training learns them anew"
        assert (message in caplog.text) is is_reported


def test_a_head_with_several_numbers_is_refused(tmp_path, weather_run, weather_options):
    options = weather_options(
        tmp_path,
        do_train=False,
        do_predict=True,
        train_file=None,
        regression=True,
        init_checkpoint=bundle.latest(str(weather_run)),
    )
    with pytest.raises(ValueError, match="predicts 2 numbers, but tables have one;"):
        fine_tuning_run.prepare(options)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"labels": "sun,rain"}, r"labels \['rain', 'sun'\], but this one has"),
        ({"do_train": False, "text_b_column": "label"}, "trained on single texts"),
    ],
)
def test_a_run_of_another_task_is_not_continued(
    weather_run, weather_options, values, message
):
    with pytest.raises(ValueError, match=message):
        fine_tuning_run.run(weather_options(weather_run, do_eval=True, **values))


@pytest.mark.slow
def test_a_run_and_its_export_tokenize_as_the_checkpoint_s_library_does(
    tmp_path, project_root, weather_options
):
    # A folder of transformers whose tokenizer keeps accents and has two more tokens.
    foreign = project_root / "tests/checkpoints/foreign/hugging_face/own_tokenizer"
    run = tmp_path / "run"
    options = weather_options(
        run,
        init_checkpoint=str(foreign),
        bert_config_file=None,
        vocab_file=None,
        max_seq_length=16,
        num_train_epochs=0.4,
    )
    fine_tuning_run.run(options)
    task = json.loads((run / "task.json").read_text())
    assert task["strip_accents"] is False
    assert task["never_split"] == ["<e1>", "</e1>"]
    predictor = bert_tf.load(str(run))
    expected = json.loads((foreign / "ids.json").read_text())
    for text, ids in expected.items():
        assert predictor.tokenizer.tokenize([text]).to_list() == [ids[1:-1]]
    export.export_saved_model(str(run), str(tmp_path / "export"))
    serve = tf.saved_model.load(str(tmp_path / "export")).signatures["serving_default"]
    served = serve(text=tf.constant(list(expected)))["probabilities"]
    answers = [answer["probabilities"] for answer in predictor.predict(list(expected))]
    np.testing.assert_allclose(
        served, [[row[name] for name in ("rain", "sun")] for row in answers], atol=1e-6
    )
    # It goes on, and it can be the start of another run.
    fine_tuning_run.run(dataclasses.replace(options, num_train_epochs=0.7))
    start = starting_point.find(str(run))
    assert start.tokenizer_arguments() == predictor.task.tokenizer_arguments()
