"""Phases under one schedule: one warm-up, one decay, and slots that carry over."""

import dataclasses
import json
import logging
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import schedules
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow
from bert_tf.training import run_folder

STEPS = (4, 3)
TOTAL = sum(STEPS)
WARMUP = 2


@pytest.fixture(scope="module")
def options_in(golden, recorded_config):
    """Returns the options of a run in a folder: options_in(folder, **changes)."""

    def create(folder, **changes):
        values = {
            "input_file": str(golden / "model" / "examples.tfrecord"),
            "output_dir": str(folder),
            "bert_config_file": recorded_config,
            "vocab_file": str(golden / "vocab.txt"),
            "max_seq_length": 64,
            "max_predictions_per_seq": 10,
            "train_batch_size": 4,
            "learning_rate": 1e-3,
            "num_warmup_steps": WARMUP,
            "log_every_steps": 1,
            "do_train": True,
        }
        return pretraining_options.RunPretrainingOptions(**(values | changes))

    return create


@pytest.fixture
def options(options_in, tmp_path):
    """Returns the options of a run: options("run", **changes)."""
    return lambda name, **changes: options_in(tmp_path / name, **changes)


@pytest.fixture
def shared(options):
    """Returns the options of two phases with one schedule: shared("run")."""

    def create(name, **changes):
        phases = tuple(f"num_train_steps={steps}" for steps in STEPS)
        return options(name, phase=phases, phase_schedule="shared", **changes)

    return create


@pytest.fixture(scope="module")
def uninterrupted(options_in, tmp_path_factory):
    """Folder of one run of all steps."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    pretraining_workflow.run(options_in(folder, num_train_steps=TOTAL))
    return folder


def state_of(folder):
    """Returns {name: array} of a folder's last checkpoint, slots and step included."""
    checkpoint = tf.train.load_checkpoint(str(folder))
    names = checkpoint.get_variable_to_shape_map()
    return {name: checkpoint.get_tensor(name) for name in names}


def metrics_of(*folders):
    """Returns the logged lines of folders, without the speed."""
    lines = [
        json.loads(line)
        for folder in folders
        for line in (folder / "metrics.jsonl").read_text().splitlines()
    ]
    return [{k: v for k, v in x.items() if "_per_second" not in k} for x in lines]


def assert_same_state(folder, other):
    first, second = state_of(folder), state_of(other)
    assert first.keys() == second.keys()
    assert any(name.endswith("adam_v") for name in first)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def test_two_phases_with_the_same_data_equal_one_run(shared, uninterrupted, tmp_path):
    report = pretraining_workflow.run(shared("run"))
    assert "Trained to step 4," in report
    assert "Trained to step 7," in report
    first, second = tmp_path / "run" / "phase_1", tmp_path / "run" / "phase_2"
    assert_same_state(uninterrupted, second)
    assert metrics_of(first, second) == metrics_of(uninterrupted)
    assert json.loads((second / "run.json").read_text())["earlier"] == []


class KilledError(BaseException):
    """What ends a run here, as a kill would: nothing catches it."""


def test_a_run_that_is_killed_in_and_between_its_phases_ends_with_the_same_state(
    shared, uninterrupted, tmp_path, monkeypatch
):
    options = shared("run", save_checkpoints_steps=5, iterations_per_loop=1)
    log = run_folder.RunFolder.log

    def die(self, step):
        raise KilledError

    def log_and_die_at(place):
        def log_and_die(self, step, values, *, tag="train"):
            log(self, step, values, tag=tag)
            if (os.path.basename(self.path), step) == place:
                raise KilledError

        return log_and_die

    for name, function in (
        ("log", log_and_die_at(("phase_1", 2))),
        ("mark_finished", die),  # Between the phases.
        ("log", log_and_die_at(("phase_2", 5))),  # Before its first checkpoint.
        ("log", log_and_die_at(("phase_2", 6))),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(run_folder.RunFolder, name, function)
            with pytest.raises(KilledError):
                pretraining_workflow.run(options)
    pretraining_workflow.run(options)
    first, second = tmp_path / "run" / "phase_1", tmp_path / "run" / "phase_2"
    assert_same_state(uninterrupted, second)
    assert metrics_of(first, second) == metrics_of(uninterrupted)


def test_each_phase_can_be_a_separate_command(options, uninterrupted, tmp_path, caplog):
    first = options("first", num_train_steps=STEPS[0], schedule_steps=TOTAL)
    pretraining_workflow.run(first)
    second = options(
        "second",
        num_train_steps=TOTAL,
        init_checkpoint=first.output_dir,
        continue_schedule=True,
        bert_config_file=None,
    )
    pretraining_workflow.run(second)
    assert_same_state(uninterrupted, tmp_path / "second")
    assert "jumps" not in caplog.text
    # The same command finds nothing left to train.
    assert "Trained to step 7," in pretraining_workflow.run(second)
    separate = dataclasses.replace(second, continue_schedule=False)
    with pytest.raises(ValueError, match="began with --continue_schedule=True"):
        pretraining_workflow.run(separate)
    # A later end of the schedule is another learning rate for what was trained.
    longer = dataclasses.replace(first, schedule_steps=TOTAL + 1)
    with pytest.raises(ValueError, match=r"finished run .4 steps. with sch"):
        pretraining_workflow.run(longer)


def test_rates_and_slots_continue_in_a_phase_of_another_length(
    options, golden, run_tool, sample_data, tmp_path
):
    short = tmp_path / "short.tfrecord"
    made = run_tool(
        "create_pretraining_data",
        f"--input_file={sample_data / 'corpus_heldout.txt'}",
        f"--output_file={short}",
        f"--vocab_file={golden / 'vocab.txt'}",
        "--max_seq_length=32",
        "--max_predictions_per_seq=5",
        "--dupe_factor=1",
    )
    assert made.exit_code == 0, made.stderr
    phases = (
        f"input_file={short} max_seq_length=32 max_predictions_per_seq=5 "
        "num_train_steps=4 train_batch_size=8",
        "num_train_steps=3",
    )
    given = options("run", phase=phases, phase_schedule="shared")
    dry = dataclasses.replace(given, dry_run=True)
    report = pretraining_workflow.run(dry)
    assert "learning rate     0.0005 in step 1, 0.0007143 in step 2" in report
    assert "0.0004286 in step 4\n" in report
    assert report.endswith("learning rate     0.0002857 in step 5, 0 in step 7")
    assert "steps             4\n" in report
    assert "steps             3\n" in report
    pretraining_workflow.run(given)
    first, second = tmp_path / "run" / "phase_1", tmp_path / "run" / "phase_2"
    lines = metrics_of(first, second)
    schedule = schedules.WarmupLinearDecay(1e-3, TOTAL, WARMUP)
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(
        [line["learning_rate"] for line in lines],
        [float(schedule(step)) for step in range(TOTAL)],
        rtol=1e-5,
    )
    # Rows of positions that phase 1 never saw get their first gradient in phase 2.
    name = "bert/embeddings/position_embeddings/adam_v"
    assert not state_of(first)[name][32:].any()
    assert state_of(second)[name][32:64].any()
    # Adam keeps 0.999 of each second moment in a step.
    name = "bert/pooler/dense/kernel/adam_v"
    assert (state_of(second)[name] >= 0.99 * state_of(first)[name]).all()


def test_a_jump_of_the_rate_is_a_warning(options, caplog):
    first = options("first", num_train_steps=2)
    pretraining_workflow.run(first)
    second = options(
        "second",
        num_train_steps=4,
        init_checkpoint=first.output_dir,
        continue_schedule=True,
        bert_config_file=None,
    )
    with caplog.at_level(logging.WARNING):
        pretraining_workflow.run(second)
    assert "The learning rate jumps: at step 2" in caplog.text
    assert "is at 0, and that of this run is at 0.0005" in caplog.text


def test_what_cannot_be_continued_is_refused(options, golden, tmp_path, monkeypatch):
    first = options("first", num_train_steps=4, schedule_steps=6)
    log = run_folder.RunFolder.log

    def log_and_stop(self, step, values, *, tag="train"):
        log(self, step, values, tag=tag)
        if step == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    continued = options(
        "second",
        num_train_steps=6,
        init_checkpoint=first.output_dir,
        continue_schedule=True,
        bert_config_file=None,
    )
    with monkeypatch.context() as patch:
        patch.setattr(run_folder.RunFolder, "log", log_and_stop)
        with pytest.raises(KeyboardInterrupt):
            pretraining_workflow.run(dataclasses.replace(first, iterations_per_loop=1))
    with pytest.raises(ValueError, match="first is not finished: it is at step 2 of 4"):
        pretraining_workflow.run(continued)
    pretraining_workflow.run(first)
    for changes, message in (
        ({"num_train_steps": 4}, "is at step 4 already, and --num_train_steps=4"),
        ({"optimizer": "lamb"}, "has no slots of --optimizer=lamb .lamb_m, lamb_v."),
        (
            {"init_checkpoint": str(golden / "model" / "bert_model.ckpt")},
            "has no slots of --optimizer=adamw",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            pretraining_workflow.run(dataclasses.replace(continued, **changes))
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize(
    "flags, sentence",
    [
        (["--phase_schedule=shared"], "--phase_schedule needs --phase"),
        (["--continue_schedule"], "--continue_schedule needs --init_checkpoint"),
        (
            ["--schedule_steps=5", "--num_train_steps=6"],
            "--schedule_steps=5 is less than --num_train_steps=6",
        ),
        (
            ["--phase=num_train_steps=2", "--schedule_steps=200000"],
            "--schedule_steps cannot be combined with --phase",
        ),
        (
            ["--max_train_minutes=1", "--schedule_steps=200000"],
            "--schedule_steps cannot be combined with --max_train_minutes",
        ),
        (
            ["--phase_schedule=shared", "--phase=learning_rate=1"],
            "--phase number 1: A phase cannot set 'learning_rate=1' with",
        ),
        (
            ["--phase=schedule_steps=1"],
            "--phase number 1: A phase cannot set 'schedule_steps=1'",
        ),
        (
            [
                "--phase_schedule=shared",
                "--phase=num_train_steps=1",
                "--early_stopping_evals=1",
                "--eval_every_steps=1",
            ],
            "--early_stopping_evals cannot be combined with --phase_schedule=shared",
        ),
    ],
)
def test_flags_that_contradict_each_other_are_one_line(
    run_tool, tmp_path, flags, sentence
):
    done = run_tool(
        "run_pretraining",
        f"--output_dir={tmp_path}",
        "--input_file=a",
        "--do_train",
        *flags,
    )
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
    assert sentence in done.stderr
