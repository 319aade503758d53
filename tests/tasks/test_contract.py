"""What all fine-tuning tasks have in common, on one run per task and process.

A task joins with `tests/tasks/TASK/contract.py`.
"""

import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
from unittest import mock

import pytest

import bert_tf
from bert_tf import options as options_module
from bert_tf import progress
from bert_tf.checkpoints import formats
from bert_tf.checkpoints.release import bundle
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import tasks
from bert_tf.serving import export
from bert_tf.training import distribution
from bert_tf.training import plots
from tests import ring
from tests import runs

DECLARED = [name for name, entry in tasks.TASKS.items() if entry.task is not None]


def of_the_runner(test):
    """Marks a test of what is the same for all tasks; the first one is quick."""
    test.is_of_the_runner = True
    return test


def pytest_generate_tests(metafunc):
    if "kind" in metafunc.fixturenames:
        of_all = not hasattr(metafunc.function, "is_of_the_runner")
        quick = DECLARED if of_all else DECLARED[:1]
        kinds = ring.quick(*quick, of=DECLARED)
        metafunc.parametrize("kind", kinds, scope="session")


@pytest.fixture(scope="session")
def contract(kind, contract_of):
    return contract_of(kind)


@pytest.fixture(scope="session")
def create(kind, task_options):
    """Returns options of the task: create(output_dir); keywords replace or add."""
    return task_options(kind)


@pytest.fixture(scope="session")
def run_dir(kind, trained):
    """Folder of a run that learned its data. Tests that change it copy it."""
    return trained(kind)


@pytest.fixture
def copied(run_dir, tmp_path):
    return shutil.copytree(run_dir, tmp_path / "copied")


def test_a_run_learns_its_data_and_writes_its_scores(run_dir, contract):
    results = runs.scores(run_dir)
    # `loss` is the name of `eval_loss` in the release.
    assert results.get("loss") == results.get("eval_loss")
    assert list(results) == sorted(results)
    assert results["global_step"] == contract.num_steps
    for name, least in contract.scores.items():
        assert results[name] >= least


def test_a_run_has_all_its_files(run_dir, kind):
    for name in ("vocab.txt", "bert_config.json", "report.html", "predictions.jsonl"):
        assert (run_dir / name).stat().st_size, name
    task = json.loads((run_dir / "task.json").read_text())
    assert (task["task"], task["max_seq_length"]) == (kind, 24)
    assert "pipeline_tag: " in (run_dir / "README.md").read_text()
    assert plots.read_data(str(run_dir))["baselines"]


@of_the_runner
def test_evaluations_during_the_training_are_logged_and_the_best_is_kept(
    run_dir, contract, create
):
    lines = runs.metrics(run_dir)
    name = next(iter(contract.scores))
    steps = [line["step"] for line in lines if name in line]
    assert steps == [contract.num_steps // 2, contract.num_steps]
    best = fine_tuning_run.Run(
        create(run_dir / "best", do_train=False, do_eval=True)
    ).evaluate()
    assert best["global_step"] in steps


@of_the_runner
def test_a_finished_run_is_evaluated_and_predicts_with_its_folder_alone(copied, create):
    results = runs.scores(copied)
    predictions = (copied / "predictions.jsonl").read_text()
    for name in ("eval_results.txt", "predictions.jsonl"):
        (copied / name).unlink()
    given = dict.fromkeys(("bert_config_file", "vocab_file"))
    values = {"do_train": False, "do_eval": True, "do_predict": True, **given}
    fine_tuning_run.run(create(copied, **values))
    assert runs.scores(copied) == pytest.approx(results, rel=1e-6)
    again = (copied / "predictions.jsonl").read_text()
    assert len(again.splitlines()) == len(predictions.splitlines())


@of_the_runner
def test_a_finished_run_is_not_trained_further(copied, create, contract):
    before = bundle.latest(str(copied))
    fine_tuning_run.Run(create(copied, **contract.evaluations())).train()
    assert bundle.latest(str(copied)) == before


# In `make test`, `tests/tools/test_killed_runs.py` kills a run.
@pytest.mark.slow
def test_a_stopped_run_ends_with_the_weights_of_an_uninterrupted_one(
    tmp_path, create, dropout_config
):
    values = {"bert_config_file": dropout_config, "num_train_epochs": 2.0}
    num_steps = fine_tuning_run.Run(create(tmp_path / "whole", **values)).train()
    num_steps = num_steps["global_step"]

    class StoppedError(Exception):
        pass

    def stop(stage, done, total, **_):
        if stage == "train" and done >= num_steps // 2:
            raise StoppedError

    options = create(
        tmp_path / "parts", save_checkpoints_steps=num_steps // 4, **values
    )
    with pytest.raises(StoppedError), progress.reporting_to(stop):
        fine_tuning_run.Run(options).train()
    assert fine_tuning_run.Run(options).train()["global_step"] == num_steps
    runs.assert_same_tensors(tmp_path / "parts", tmp_path / "whole")


def test_the_folder_alone_is_enough_to_predict(run_dir, contract):
    model = bert_tf.load(str(run_dir))
    answers = model.predict(contract.inputs)
    for answer, expected in zip(answers, contract.answers, strict=True):
        assert expected.items() <= answer.items()
    assert model.scores == runs.scores(run_dir)
    assert model.predict([]) == []
    # One of many is answered as it is alone, in its place.
    many = [contract.inputs[i % len(contract.inputs)] for i in range(70)]
    many_answers = model.predict(many)
    for index in (0, 1, -2):
        runs.assert_close(many_answers[index], answers[index], absolute=1e-4)


def test_inputs_of_another_form_are_refused(run_dir, contract):
    model = bert_tf.load(str(run_dir))
    for inputs in contract.wrong_inputs:
        with pytest.raises(ValueError, match=contract.expected):
            model.predict(inputs)


@of_the_runner
def test_a_run_is_exported(run_dir, tmp_path, kind):
    folder = pathlib.Path(export.export_saved_model(str(run_dir), str(tmp_path / "1")))
    task = json.loads((folder / "assets.extra" / "task.json").read_text())
    assert task["task"] == kind
    assert (folder / "saved_model.pb").exists()


@of_the_runner
def test_a_dry_run_measures_steps_and_writes_nothing(tmp_path, create):
    report = fine_tuning_run.run(create(tmp_path / "run", do_train=False, dry_run=True))
    assert report.startswith("parameters ")
    assert "\ntime " in report
    assert not (tmp_path / "run").exists()


@of_the_runner
def test_data_is_checked_and_nothing_is_written(tmp_path, create):
    report = fine_tuning_run.run(create(tmp_path / "run", do_train=False, check=True))
    assert not isinstance(report, options_module.FailureReport)
    for text in ("in train", "in dev", "casing: ", "length: "):
        assert text in report
    assert report.endswith("errors: 0")
    assert not (tmp_path / "run").exists()


@of_the_runner
def test_the_data_is_checked_with_the_settings_of_a_finished_run(run_dir, create):
    values = {"do_train": False, "do_eval": True, "check": True}
    assert "--max_seq_length=24" in fine_tuning_run.run(create(run_dir, **values))
    with pytest.raises(ValueError, match="omit --max_seq_length"):
        fine_tuning_run.run(create(run_dir, max_seq_length=32, **values))


def test_errors_in_the_data_fail_the_check(tmp_path, create, contract):
    values = contract.write_errors(tmp_path)
    report = fine_tuning_run.run(
        create(tmp_path / "run", do_train=False, check=True, **values)
    )
    assert isinstance(report, options_module.FailureReport)
    errors = [line for line in report.splitlines() if line.startswith("error ")]
    for error, expected in zip(errors, contract.errors, strict=True):
        assert expected in error


def test_errors_in_the_data_end_a_run_before_anything_is_written(
    tmp_path, create, contract
):
    values = {"do_eval": True, **contract.write_errors(tmp_path)}
    with pytest.raises(ValueError, match="wrong"):
        fine_tuning_run.run(create(tmp_path / "run", **values))
    assert not (tmp_path / "run").exists()


def test_the_options_are_imported_without_a_framework(kind):
    module = str(tasks.TASKS[kind].options).partition(":")[0]
    program = (
        f"import sys, {module}; "
        "print({'keras', 'tensorflow', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "values, message",
    [
        # Another value, and the default, if it is given.
        ({"max_seq_length": 32}, "--max_seq_length=32, but .* trained with 24; omit"),
        ({"max_seq_length": 384}, "--max_seq_length=384, but .* trained with 24; omit"),
        ({"do_lower_case": False}, "--do_lower_case=False, but .* trained with True"),
    ],
)
def test_flags_that_contradict_a_finished_run_are_refused(
    run_dir, create, values, message
):
    options = create(run_dir, do_train=False, do_eval=True, **values)
    with pytest.raises(ValueError, match=message):
        fine_tuning_run.run(options)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"max_seq_length": 32}, "max_seq_length 24, but this one has 32"),
        ({"do_lower_case": False}, "do_lower_case True, but this one has False"),
    ],
)
def test_a_run_with_another_task_is_not_continued(run_dir, create, values, message):
    with pytest.raises(ValueError, match=message):
        fine_tuning_run.run(create(run_dir, **values))


@of_the_runner
def test_a_run_with_another_vocabulary_or_model_is_not_continued(
    run_dir, create, golden, tmp_path
):
    *tokens, one, other = (golden / "vocab.txt").read_text().splitlines()
    vocab_file = tmp_path / "vocab.txt"
    vocab_file.write_text("\n".join([*tokens, other, one]) + "\n")
    applied = {"do_train": False, "do_eval": True}
    for values in ({}, applied):
        with pytest.raises(ValueError, match="with a different vocabulary"):
            fine_tuning_run.run(create(run_dir, vocab_file=str(vocab_file), **values))
    config = json.loads((run_dir / "bert_config.json").read_text())
    bert_config_file = tmp_path / "other.json"
    bert_config_file.write_text(json.dumps(config | {"num_attention_heads": 4}))
    with pytest.raises(ValueError, match="num_attention_heads is 2 there, 4"):
        fine_tuning_run.run(create(run_dir, bert_config_file=str(bert_config_file)))


@pytest.mark.parametrize(
    "values, message",
    [
        ({"do_train": False, "do_eval": True}, "contains no checkpoint; train first"),
        ({"vocab_file": None}, "--vocab_file"),
        ({"num_train_epochs": 0.01}, "do not fill one batch of 8"),
        ({"train_batch_size": 1000}, "do not fill one batch of 1000"),
        ({"max_seq_length": 65}, "max_position_embeddings"),
        ({"init_checkpoint": "nowhere/model.ckpt"}, "nowhere/model.ckpt"),
    ],
)
def test_what_does_not_fit_is_refused_before_training(
    tmp_path, create, values, message
):
    with pytest.raises((ValueError, OSError), match=message):
        fine_tuning_run.run(create(tmp_path / "run", **values))
    assert not (tmp_path / "run").exists()


def test_an_encoder_without_the_head_is_not_applied(tmp_path, create, golden, contract):
    prefix = str(golden / "model" / "bert_model.ckpt")
    options = create(tmp_path, do_train=False, do_eval=True, init_checkpoint=prefix)
    if contract.needs_head:
        with pytest.raises(ValueError, match=r"train first \(--do_train\)"):
            fine_tuning_run.run(options)


@of_the_runner
def test_a_fine_tuned_checkpoint_is_evaluated_in_a_new_folder(
    tmp_path, run_dir, create, contract
):
    given = dict.fromkeys(("bert_config_file", "vocab_file"))
    options = create(
        tmp_path, do_train=False, do_eval=True, init_checkpoint=str(run_dir), **given
    )
    results = fine_tuning_run.Run(options).evaluate()
    for name, least in contract.scores.items():
        assert results[name] >= least


@pytest.mark.slow
def test_init_checkpoint_is_opened_once(tmp_path, create, golden, monkeypatch):
    open_source = mock.Mock(side_effect=formats.open_source)
    monkeypatch.setattr(formats, "open_source", open_source)
    prefix = str(golden / "model" / "bert_model.ckpt")
    options = create(tmp_path, init_checkpoint=prefix, num_train_epochs=1.0)
    fine_tuning_run.run(options)
    assert [str(call.args[0]) for call in open_source.call_args_list] == [prefix]


@of_the_runner
@pytest.mark.parametrize(
    "values, compute_dtype, warmup_proportion",
    [
        ({}, "float32", 0.1),
        ({"warmup_proportion": 0.5, "dtype": "mixed_bfloat16"}, "bfloat16", 0.5),
    ],
    ids=["default", "other"],
)
def test_model_and_rate_follow_their_flags(
    tmp_path, create, contract, values, compute_dtype, warmup_proportion
):
    options = create(tmp_path, **values)
    trainer = fine_tuning_run.Run(options).trainer
    assert trainer.model.compute_dtype == compute_dtype
    first_rate = options.learning_rate / (contract.num_steps * warmup_proportion)
    rate = float(trainer.optimizer.learning_rate)
    assert rate == pytest.approx(first_rate, rel=1e-5)


@of_the_runner
@pytest.mark.parametrize("name", ["eval_batch_size", "predict_batch_size"])
def test_a_batch_that_does_not_divide_is_refused_before_training(
    monkeypatch, tmp_path, create, name
):
    class TwoReplicas:
        num_replicas_in_sync = 2

        @staticmethod
        def scope():
            return contextlib.nullcontext()

    monkeypatch.setattr(
        distribution, "create_strategy", lambda *args, **kwargs: TwoReplicas()
    )
    try:
        options = create(tmp_path, do_eval=True, do_predict=True, **{name: 7})
    except TypeError:
        return  # The task has only eval_batch_size.
    with pytest.raises(ValueError, match=f"--{name}=7 is not divisible by 2"):
        fine_tuning_run.Run(options)
