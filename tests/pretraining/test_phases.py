"""Two phases, of short and of long sequences, from one command."""

import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.release import rotation
from bert_tf.data import record_index
from bert_tf.modeling import config as config_module
from bert_tf.pretraining import examples
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow
from bert_tf.training import run_folder


@pytest.fixture(scope="module")
def short_records(golden, sample_data, tmp_path_factory, run_tool):
    """TFRecords of length 32; the recorded ones have length 64."""
    path = tmp_path_factory.mktemp("data") / "short.tfrecord"
    done = run_tool(
        "create_pretraining_data",
        f"--input_file={sample_data / 'corpus_heldout.txt'}",
        f"--output_file={path}",
        f"--vocab_file={golden / 'vocab.txt'}",
        "--max_seq_length=32",
        "--max_predictions_per_seq=5",
        "--dupe_factor=1",
    )
    assert done.exit_code == 0, done.stderr
    return path


@pytest.fixture
def pretrain(golden, tmp_path, run_tool, short_records):
    """Runs the tool with flags before those of two phases."""

    def run(*flags, name="run", second=""):
        long_records = golden / "model" / "examples.tfrecord"
        return run_tool(
            "run_pretraining",
            f"--output_dir={tmp_path / name}",
            f"--bert_config_file={golden / 'model' / 'bert_config.json'}",
            f"--vocab_file={golden / 'vocab.txt'}",
            "--train_batch_size=4",
            "--log_every_steps=1",
            "--learning_rate=0.001",
            f"--phase=input_file={short_records} max_seq_length=32 "
            "max_predictions_per_seq=5 num_train_steps=3 num_warmup_steps=1",
            f"--phase=input_file={long_records} max_seq_length=64 "
            f"max_predictions_per_seq=10 num_train_steps=6 num_warmup_steps=1 {second}",
            *flags,
        )

    return run


def weights_of(folder):
    """Returns {name: array} of a folder's last checkpoint, without Adam's slots."""
    checkpoint = tf.train.load_checkpoint(str(folder))
    return {
        name: checkpoint.get_tensor(name)
        for name in checkpoint.get_variable_to_shape_map()
        if not name.endswith(("adam_m", "adam_v", "global_step"))
    }


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name, weight in first.items():
        np.testing.assert_array_equal(weight, second[name], err_msg=name)


def test_two_phases_are_two_runs_from_one_command(pretrain, tmp_path):
    done = pretrain("--do_train", "--do_eval", second="learning_rate=0.0")
    assert done.exit_code == 0, done.stderr
    assert "Trained to step 3" in done.stdout
    assert "Trained to step 6" in done.stdout
    first, second = tmp_path / "run" / "phase_1", tmp_path / "run" / "phase_2"
    assert tf.train.latest_checkpoint(str(first)).endswith("-3")
    assert tf.train.latest_checkpoint(str(second)).endswith("-6")
    # With rate 0 the second phase ends with the weights that it began with.
    assert_same(weights_of(first), weights_of(second))
    assert (second / "eval_results.txt").exists()


def test_a_run_that_ends_in_its_second_phase_goes_on_there(
    pretrain, tmp_path, monkeypatch
):
    assert pretrain("--do_train", name="uninterrupted").exit_code == 0
    log = run_folder.RunFolder.log

    def log_and_send(self, step, values, *, tag="train"):
        log(self, step, values, tag=tag)
        if self.path.endswith("phase_2") and step == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.RunFolder, "log", log_and_send)
        assert pretrain("--do_train").exit_code == 143
    first = (tmp_path / "run" / "phase_1" / "metrics.jsonl").read_bytes()
    assert pretrain("--do_train").exit_code == 0
    assert (tmp_path / "run" / "phase_1" / "metrics.jsonl").read_bytes() == first
    assert_same(
        weights_of(tmp_path / "run" / "phase_2"),
        weights_of(tmp_path / "uninterrupted" / "phase_2"),
    )


@pytest.mark.parametrize(
    "second, sentence",
    [
        ("max_seq_length=4096", "max_seq_length is 4096, but the model has at most"),
        ("max_predictions_per_seq=9", "max_predictions_per_seq"),
    ],
)
def test_a_mistake_in_the_second_phase_is_found_before_the_first_one_trains(
    pretrain, tmp_path, second, sentence
):
    failed = pretrain("--do_train", second=second)
    assert failed.exit_code == 1
    assert sentence in failed.stderr.splitlines()[-1]
    assert not (tmp_path / "run" / "phase_1").exists()


def test_records_of_a_later_phase_may_be_written_while_the_first_one_trains(
    pretrain, tmp_path
):
    failed = pretrain("--do_train", second="input_file=later.tfrecord")
    assert failed.exit_code == 1
    assert "No such file: later.tfrecord. It has to exist when the" in failed.stderr
    assert "No such file: later.tfrecord" in failed.stderr.splitlines()[-1]
    assert rotation.latest(str(tmp_path / "run" / "phase_1")).endswith("-3")


def test_remote_records_without_a_side_file_are_not_downloaded_early(
    golden, short_records
):
    remote = "ram://phases/short.tfrecord"
    tf.io.gfile.copy(str(short_records), remote, overwrite=True)
    options = pretraining_options.RunPretrainingOptions(
        bert_config_file=golden / "model" / "bert_config.json",
        output_dir="unused",
        input_file=remote,
        max_seq_length=64,  # The records have 32.
    )
    config = config_module.BertConfig(vocab_size=512)
    examples.check_later(options, config, None)
    tf.io.gfile.copy(
        record_index.side_path(str(short_records)), record_index.side_path(remote)
    )
    with pytest.raises(ValueError, match="max_seq_length 32, expected 64"):
        examples.check_later(options, config, None)


def test_a_dry_run_reports_both_phases_and_python_accepts_them_too(
    pretrain, golden, short_records, tmp_path
):
    done = pretrain("--dry_run")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("parameters") == 2
    assert not (tmp_path / "run").exists()
    reached = pretraining_workflow.train(
        pretraining_options.RunPretrainingOptions(
            bert_config_file=golden / "model" / "bert_config.json",
            output_dir=tmp_path / "python",
            train_batch_size=2,
            max_seq_length=32,
            max_predictions_per_seq=5,
            input_file=short_records,
            phase=("num_train_steps=1", "num_train_steps=2"),
        )
    )
    assert reached["global_step"] == 2


@pytest.mark.parametrize("schedule", ["separate", "shared"])
def test_a_phase_gets_no_more_steps_after_the_next_one_has_started(
    golden, short_records, tmp_path, schedule
):
    def train(*num_steps):
        return pretraining_workflow.train(
            pretraining_options.RunPretrainingOptions(
                bert_config_file=golden / "model" / "bert_config.json",
                output_dir=tmp_path,
                train_batch_size=2,
                max_seq_length=32,
                max_predictions_per_seq=5,
                input_file=short_records,
                phase=tuple(f"num_train_steps={number}" for number in num_steps),
                phase_schedule=schedule,
            )
        )

    train(1, 1)
    with pytest.raises(ValueError, match="phase_2 has already started from its weight"):
        train(2, 1)
    assert tf.train.latest_checkpoint(str(tmp_path / "phase_1")).endswith("-1")


@pytest.mark.parametrize(
    "phase, sentence",
    [
        ("max_seq_lenght=64", "A phase cannot set 'max_seq_lenght=64'"),
        ("output_dir=x", "A phase cannot set 'output_dir=x'"),
        ("max_seq_length", "A phase cannot set 'max_seq_length'"),
        ("max_seq_length=long", "--max_seq_length: expected a whole number, got"),
        ("input_file='a", "No closing quotation"),
        (
            "input_file=a max_train_minutes=1 num_train_steps=2",
            "--num_train_steps cannot be combined with",
        ),
        ("max_seq_length=64", "--input_file is required"),  # There is none for all.
    ],
)
def test_a_mistake_in_a_phase_is_one_line(run_tool, tmp_path, phase, sentence):
    done = run_tool(
        "run_pretraining", f"--output_dir={tmp_path}", "--do_train", f"--phase={phase}"
    )
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "number 1" in done.stderr
    assert sentence in done.stderr


def test_several_machines_take_one_phase_at_a_time(run_tool, tmp_path):
    done = run_tool(
        "run_pretraining",
        f"--output_dir={tmp_path}",
        "--do_train",
        "--device=multi_worker",
        "--phase=input_file=a",
    )
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "run each phase separately" in done.stderr
    assert "--init_checkpoint" in done.stderr
