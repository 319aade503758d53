"""A whole run on a task that is learned in seconds, and what does not fit."""

import contextlib
import json
import pathlib
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import rotation
from bert_tf.tasks.multiple_choice import workflow as multiple_choice_workflow
from bert_tf.training import distribution
from bert_tf.training import estimates
from bert_tf.training import plot_data


def read_results(folder):
    lines = (folder / "eval_results.txt").read_text().splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory, choice_options):
    """Folder of a run that learned to avoid repetitions."""
    folder = tmp_path_factory.mktemp("runs") / "choice"
    options = choice_options(
        folder,
        do_eval=True,
        do_predict=True,
        eval_every_steps=40,
        best_metric="eval_accuracy",
    )
    report = multiple_choice_workflow.run(options)
    assert "eval_accuracy = 1.0" in report
    return folder


def test_the_evaluation_has_the_usual_keys(run_dir):
    results = read_results(run_dir)
    assert list(results) == ["eval_accuracy", "eval_loss", "global_step", "loss"]
    assert results["eval_accuracy"] == 1.0
    assert results["eval_loss"] == results["loss"] < 0.3
    assert results["global_step"] == 80  # int(32 / 8 * 20)


def test_an_evaluation_writes_what_the_plots_need(run_dir):
    data = plot_data.read(str(run_dir))
    assert all(one["accuracy"] == 1.0 for one in data["calibration"])
    assert data["baselines"]["eval_accuracy"]["name"] == "majority class"
    assert sum(data["lengths"]["counts"]) == 32


def test_training_and_evaluation_are_logged_and_the_best_is_kept(
    run_dir, choice_options
):
    text = (run_dir / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["step"] for line in lines if "eval_accuracy" in line] == [40, 80]
    assert "choice_loss" in lines[0]
    best = multiple_choice_workflow.evaluate(choice_options(run_dir / "best"))
    assert best["global_step"] in (40, 80)


def test_both_files_of_predictions_say_the_same(run_dir):
    lines = (run_dir / "predictions.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["id"] for record in records] == [f"test-{i}" for i in range(1, 6)]
    assert [record["label"] for record in records] == ["2", "0", "1", "2", "0"]
    columns = np.loadtxt(run_dir / "test_results.tsv", delimiter="\t")
    by_number = [[record["probabilities"][n] for n in "012"] for record in records]
    np.testing.assert_allclose(columns, by_number, rtol=1e-6)


def test_the_run_has_a_model_card(run_dir, tmp_path, choice_options, write):
    text = (run_dir / "README.md").read_text()
    assert "pipeline_tag: multiple-choice" in text
    assert "Chooses the most plausible of 3 endings" in text
    wrong = write(
        "wrong.tsv",
        "startphrase\tending0\tending1\tending2\tlabel\n"
        "the bee\tis warm\tball ball\twheel wheel\t1\n",
    )
    run = shutil.copytree(run_dir, tmp_path / "run")
    multiple_choice_workflow.evaluate(choice_options(run, eval_file=wrong))
    # It is other data than the run's own, so the card stays as it is.
    assert (run / "README.md").read_text() == text
    [line] = (run / "wrong_examples-wrong.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "text": "the bee",
        "expected": "ball ball",
        "predicted": "is warm",
    }


def test_the_folder_alone_is_enough_to_choose(run_dir):
    task = json.loads((run_dir / "task.json").read_text())
    assert (task["task"], task["num_endings"]) == ("multiple_choice", 3)
    choices = [
        ("the lamp", ["ball ball", "is slow", "wheel wheel"]),
        ("the bee", ("is warm", "twelve twelve")),  # Another number of endings.
    ]
    answers = bert_tf.load(str(run_dir)).predict(choices)
    assert [answer["label"] for answer in answers] == ["1", "0"]
    assert answers[0]["ending"] == "is slow"
    assert sum(answers[1]["probabilities"].values()) == pytest.approx(1.0)
    alone = bert_tf.load(str(run_dir)).predict(choices[1:])[0]["probabilities"]
    assert alone == pytest.approx(answers[1]["probabilities"], abs=1e-6)


def test_many_choices_are_answered_as_each_alone(run_dir):
    model = bert_tf.load(str(run_dir))
    many = [("the river", ["is " * (i % 5 + 1), "at midnight", "a"]) for i in range(70)]
    answers = model.predict(many)
    alone = model.predict(many[-1:])[0]["probabilities"]
    assert answers[-1]["probabilities"] == pytest.approx(alone, abs=1e-5)
    assert model.predict([]) == []


@pytest.mark.parametrize(
    "inputs",
    [
        "a text",
        ["a text"],
        [("a", "b")],
        [("a", ["b"])],
        [("a", ["b", ""])],
        [("a", 1)],
    ],
)
def test_inputs_that_are_no_choices_are_refused(run_dir, inputs):
    with pytest.raises(ValueError, match=r"[Ee]xpected .*\(start, endings\)"):
        bert_tf.load(str(run_dir)).predict(inputs)


def test_evaluating_and_predicting_need_only_the_folder(run_dir, choice_options):
    before = np.loadtxt(run_dir / "test_results.tsv", delimiter="\t")
    (run_dir / "test_results.tsv").unlink()
    given = ("bert_config_file", "vocab_file", "train_file")
    options = choice_options(
        run_dir,
        do_train=False,
        do_eval=True,
        do_predict=True,
        **dict.fromkeys(given),
    )
    multiple_choice_workflow.run(options)
    after = np.loadtxt(run_dir / "test_results.tsv", delimiter="\t")
    np.testing.assert_allclose(after, before, rtol=1e-6)
    assert read_results(run_dir)["eval_accuracy"] == 1.0


def test_a_run_that_was_stopped_ends_with_the_weights_of_one_that_was_not(
    tmp_path, choice_options, recorded_config
):
    values = {"bert_config_file": recorded_config, "num_train_epochs": 2.0}
    whole = choice_options(tmp_path / "whole", **values)
    assert multiple_choice_workflow.train(whole)["global_step"] == 8

    class StoppedError(Exception):
        pass

    def stop(stage, done, total, **_):
        if stage == "train" and done >= 4:
            raise StoppedError

    parts = choice_options(tmp_path / "parts", save_checkpoints_steps=2, **values)
    with pytest.raises(StoppedError):
        multiple_choice_workflow.MultipleChoice(parts, progress=stop).train()
    assert multiple_choice_workflow.train(parts)["global_step"] == 8
    prefixes = [rotation.latest(str(tmp_path / name)) for name in ("whole", "parts")]
    found = [
        bundle.read(prefix, sorted(bundle.read_names_and_shapes(prefix)))
        for prefix in prefixes
    ]
    assert set(found[0]) == set(found[1])
    for name, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][name], err_msg=name)


@pytest.mark.parametrize(
    "values, compute_dtype, first_rate",
    [
        ({}, "float32", 1e-2 / 8),  # 80 steps, of which a tenth is warm-up.
        (
            {"dtype": "mixed_bfloat16", "warmup_proportion": 0.5},
            "bfloat16",
            1e-2 / 40,
        ),
    ],
    ids=["default", "other"],
)
def test_model_and_rate_follow_their_flags(
    tmp_path, choice_options, values, compute_dtype, first_rate
):
    trainer = multiple_choice_workflow.MultipleChoice(
        choice_options(tmp_path, **values)
    ).trainer
    assert trainer.model.compute_dtype == compute_dtype
    rate = float(trainer.optimizer.learning_rate)
    assert rate == pytest.approx(first_rate, rel=1e-5)


def test_the_columns_are_those_that_are_named(tmp_path, choice_options, write):
    path = write("a.csv", "x,He,runs,1,sits\ny,She,eats,0,goes\n")
    options = choice_options(
        tmp_path / "run",
        train_file=path,
        header="id,begin,one,right,two",
        start_column="begin",
        ending_columns="two,one",
        label_column="right",
        train_batch_size=2,
    )
    first = multiple_choice_workflow.MultipleChoice(options).examples["train"][0]
    assert (first.guid, first.start, first.label) == ("x", "He", 1)
    assert first.endings == ("sits", "runs")


def test_a_run_is_applied_to_a_table_without_a_header_line(
    run_dir, tmp_path, choice_options, write
):
    folder = shutil.copytree(run_dir, tmp_path / "run")
    path = write("plain.csv", "the bee,queen queen,and honey,wheel wheel\n")
    options = choice_options(
        folder,
        do_train=False,
        do_predict=True,
        predict_file=path,
        header="startphrase,ending0,ending1,ending2",
    )
    multiple_choice_workflow.run(options)
    [table] = folder.glob("predictions*plain*.csv")
    assert "and honey" in table.read_text().splitlines()[1]


@pytest.mark.parametrize(
    "names, row",
    [
        (("train.tsv", "dev.tsv", "test.tsv"), "c\tHe\ta\tb\tc\td\t3\n"),
        (
            ("train.csv", "val.csv", "test.csv"),
            "startphrase,ending0,ending1,ending2,ending3,label\nHe,a,b,c,d,3\n",
        ),
    ],
    ids=["CODAH", "SWAG"],
)
def test_a_folder_as_published_is_read(tmp_path, choice_options, names, row):
    for name in names:
        (tmp_path / name).write_text(row)
    own = ("train_file", "eval_file", "predict_file")
    options = choice_options(
        tmp_path / "run",
        data_dir=str(tmp_path),
        do_eval=True,
        do_predict=True,
        train_batch_size=1,
        num_train_epochs=1.0,
        **dict.fromkeys(own),
    )
    multiple_choice_workflow.run(options)
    assert "eval_accuracy" in read_results(tmp_path / "run")
    assert len((tmp_path / "run" / "test_results.tsv").read_text().split()) == 4


def test_the_encoder_comes_from_the_checkpoint(tmp_path, choice_options, golden):
    prefix = str(golden / "model" / "bert_model.ckpt")
    options = choice_options(tmp_path, init_checkpoint=prefix, bert_config_file=None)
    model = multiple_choice_workflow.MultipleChoice(options).trainer.model
    name = "bert/encoder/layer_1/output/dense/kernel"
    np.testing.assert_array_equal(
        checkpoint_names.checkpoint_variables(model)[name],
        bundle.read(prefix, [name])[name],
    )


def test_a_fine_tuned_checkpoint_is_evaluated_in_a_new_folder(
    tmp_path, run_dir, choice_options
):
    options = choice_options(
        tmp_path,
        do_train=False,
        do_eval=True,
        init_checkpoint=str(run_dir),
        **dict.fromkeys(("train_file", "bert_config_file", "vocab_file")),
    )
    assert multiple_choice_workflow.evaluate(options)["eval_accuracy"] == 1.0


def test_the_casing_is_the_checkpoints(tmp_path, choice_options, run_dir):
    cased = shutil.copytree(run_dir, tmp_path / "cased")
    task = json.loads((cased / "task.json").read_text()) | {"do_lower_case": False}
    (cased / "task.json").write_text(json.dumps(task))
    values = {"init_checkpoint": str(cased), "vocab_file": None}
    options = choice_options(tmp_path / "run", **values)
    assert not multiple_choice_workflow.MultipleChoice(options).setup.task.do_lower_case
    with pytest.raises(ValueError, match="pass --do_lower_case=False"):
        multiple_choice_workflow.run(
            choice_options(tmp_path / "run", do_lower_case=True, **values)
        )


def test_a_dry_run_counts_every_endings_sequence_and_writes_nothing(
    tmp_path, choice_options
):
    options = choice_options(tmp_path / "run", do_train=False, dry_run=True)
    choice = multiple_choice_workflow.MultipleChoice(options)
    [flops] = [li for li in choice.dry_run_report().splitlines() if "FLOPs" in li]
    one = estimates.forward_flops(choice.setup.config, 24, reads_all_positions=False)
    assert float(flops.split()[-1]) == pytest.approx(3 * 8 * 3 * one, rel=0.01)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "values, message",
    [
        ({"do_train": False, "do_eval": True}, "contains no checkpoint; train first"),
        (
            {"do_train": False, "do_predict": True, "vocab_file": None},
            "contains no task.json, so --vocab_file is needed",
        ),
        ({"num_train_epochs": 0.1}, "do not fill one batch of 8"),
        ({"train_batch_size": 1000}, "do not fill one batch of 1000"),
        ({"max_seq_length": 65}, "max_position_embeddings"),
        (
            {"eval_every_steps": 1, "best_metric": "eval_f2"},
            "--best_metric=eval_f2 is not among the scores of this run: eval_accuracy, "
            "eval_loss.",
        ),
        ({"start_column": "words"}, "no column 'words'; the columns are 'startphrase"),
        (
            {"ending_columns": "endings"},
            "a .tsv file cannot contain lists in the column",
        ),
        ({"init_checkpoint": "nowhere/model.ckpt"}, "nowhere/model.ckpt"),
        ({"data_dir": "nowhere", "eval_file": None}, "contains no data set"),
    ],
)
def test_what_does_not_fit_is_refused_before_training(
    tmp_path, choice_options, values, message
):
    if "data_dir" in values:
        values = values | dict.fromkeys(("train_file", "predict_file"))
    with pytest.raises((ValueError, OSError), match=message):
        multiple_choice_workflow.run(choice_options(tmp_path / "run", **values))
    assert not (tmp_path / "run").exists()


def test_a_model_with_one_segment_is_refused(tmp_path, choice_options, quick_config):
    config = tmp_path / "bert_config.json"
    values = json.loads(pathlib.Path(quick_config).read_text())
    config.write_text(json.dumps(values | {"type_vocab_size": 1}))
    options = choice_options(tmp_path / "run", bert_config_file=str(config))
    with pytest.raises(ValueError, match=r"two segments.*type_vocab_size 1"):
        multiple_choice_workflow.run(options)


def test_files_with_another_number_of_endings_are_refused(
    tmp_path, choice_options, write
):
    two = write("a.tsv", "startphrase\tending0\tending1\tlabel\nHe\ta\tb\t0\n")
    options = choice_options(tmp_path / "run", do_eval=True, eval_file=two)
    with pytest.raises(ValueError, match=r"a\.tsv:2: there are 2 endings, .* 3"):
        multiple_choice_workflow.run(options)


def test_an_encoder_alone_is_not_evaluated(tmp_path, choice_options, golden):
    prefix = str(golden / "model" / "bert_model.ckpt")
    options = choice_options(
        tmp_path, do_train=False, do_eval=True, init_checkpoint=prefix
    )
    with pytest.raises(ValueError, match="was not fine-tuned for multiple choice"):
        multiple_choice_workflow.run(options)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"max_seq_length": 32}, "max_seq_length 24, but this one has 32"),
        ({"do_lower_case": False}, "do_lower_case True, but this one has False"),
        ({"label_column": "ending0"}, "the label is"),
    ],
)
def test_a_run_of_another_task_is_not_continued(
    run_dir, choice_options, values, message
):
    with pytest.raises(ValueError, match=message):
        multiple_choice_workflow.run(choice_options(run_dir, **values))


@pytest.mark.parametrize(
    "values, message",
    [
        ({"max_seq_length": 32}, "--max_seq_length=32, but .* trained with 24; omit"),
        # The default, if it is given.
        ({"max_seq_length": 128}, "--max_seq_length=128, but .* trained with 24; omit"),
        ({"do_lower_case": False}, "--do_lower_case=False, but .* trained with True"),
    ],
)
def test_flags_that_contradict_a_finished_run_are_refused(
    run_dir, choice_options, values, message
):
    with pytest.raises(ValueError, match=message):
        multiple_choice_workflow.run(
            choice_options(run_dir, do_train=False, do_predict=True, **values)
        )


def test_a_run_with_another_vocabulary_or_model_is_not_continued(
    run_dir, choice_options, golden, tmp_path
):
    *tokens, one, other = (golden / "vocab.txt").read_text().splitlines()
    swapped = tmp_path / "vocab.txt"
    swapped.write_text("\n".join([*tokens, other, one]) + "\n")
    with pytest.raises(ValueError, match="with a different vocabulary"):
        multiple_choice_workflow.run(choice_options(run_dir, vocab_file=str(swapped)))
    config = json.loads((run_dir / "bert_config.json").read_text())
    other_config = tmp_path / "other.json"
    other_config.write_text(json.dumps(config | {"num_attention_heads": 4}))
    with pytest.raises(ValueError, match="num_attention_heads is 2 there, 4"):
        multiple_choice_workflow.run(
            choice_options(run_dir, bert_config_file=str(other_config))
        )


@pytest.mark.parametrize("name", ["eval_batch_size", "predict_batch_size"])
def test_a_batch_that_does_not_divide_is_refused_before_training(
    monkeypatch, tmp_path, choice_options, name
):
    class TwoReplicas:
        num_replicas_in_sync = 2

        @staticmethod
        def scope():
            return contextlib.nullcontext()

    monkeypatch.setattr(
        distribution, "create_strategy", lambda *args, **kwargs: TwoReplicas()
    )
    options = choice_options(tmp_path, do_eval=True, do_predict=True, **{name: 7})
    with pytest.raises(ValueError, match=f"--{name}=7 is not divisible by 2"):
        multiple_choice_workflow.MultipleChoice(options)


def test_init_checkpoint_is_opened_once(
    tmp_path, choice_options, golden, opened_checkpoints
):
    prefix = str(golden / "model" / "bert_model.ckpt")
    options = choice_options(
        tmp_path,
        init_checkpoint=prefix,
        num_train_epochs=1.0,
        do_eval=True,
        do_predict=True,
    )
    multiple_choice_workflow.run(options)
    assert opened_checkpoints == [prefix]
