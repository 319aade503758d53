"""Phases of different lengths under one schedule: one warm-up, one decay, one run."""

import json
import signal

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import schedules
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow
from bert_tf.training import run_folder
from tests import ring
from tests import runs

TOTAL, WARMUP = 7, 2


@pytest.fixture(scope="module")
def short_records(create_data, sample_data):
    """TFRecords of length 32; the recorded ones have length 64."""
    return create_data(
        input_file=sample_data / "corpus_heldout.txt",
        max_seq_length=32,
        max_predictions_per_seq=5,
        dupe_factor=1,
        max_unknown_share=1,
    )


@pytest.fixture(scope="module")
def options_in(golden, dropout_config):
    """Returns the options of a run in a folder: options_in(folder, **changes)."""

    def create(folder, **changes):
        values = {
            "input_file": str(golden / "model" / "examples.tfrecord"),
            "output_dir": str(folder),
            "bert_config_file": dropout_config,
            "vocab_file": str(golden / "vocab.txt"),
            "train_batch_size": 4,
            "learning_rate": 1e-3,
            "num_warmup_steps": WARMUP,
            "do_train": True,
        }
        return pretraining_options.RunPretrainingOptions(**(values | changes))

    return create


@pytest.fixture(scope="module")
def uninterrupted(options_in, tmp_path_factory):
    """Folder of a run of all steps in one phase."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    options = options_in(
        folder, num_train_steps=TOTAL, max_seq_length=64, max_predictions_per_seq=10
    )
    pretraining_workflow.run(options)
    return folder


def metrics_of(folder):
    """Returns the logged lines without the speed."""
    lines = runs.metrics(folder)
    return [{k: v for k, v in x.items() if "_per_second" not in k} for x in lines]


def assert_same_run(folder, other):
    runs.assert_same_tensors(folder, other)
    assert metrics_of(folder) == metrics_of(other)


class KilledError(BaseException):
    """What ends a run here, as a kill would: nothing catches it."""


# At step 4 the second phase begins, and step 5 has a checkpoint.
@pytest.mark.parametrize("steps", [(4, 6), ring.slow((2, 4, 5, 6))])
def test_phases_of_the_same_length_equal_one_run_even_if_killed_in_each(
    options_in, uninterrupted, tmp_path, monkeypatch, steps
):
    options = options_in(
        tmp_path,
        phases="4@64,3@64",
        save_checkpoints_steps=5,
        iterations_per_loop=1,
    )
    log = run_folder.RunFolder.log

    for last_step in steps:

        def log_and_die(self, step, values, *, tag="train", last=last_step):
            log(self, step, values, tag=tag)
            if step == last:
                raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(run_folder.RunFolder, "log", log_and_die)
            with pytest.raises(KilledError):
                pretraining_workflow.run(options)
    assert "Trained to step 7," in pretraining_workflow.run(options)
    assert_same_run(uninterrupted, tmp_path)
    assert "Trained to step 7," in pretraining_workflow.run(options)  # Nothing is left.


@pytest.mark.slow
def test_each_phase_reads_the_records_of_its_length(
    options_in, golden, short_records, tmp_path, signal_at
):
    both = f"{golden / 'model' / 'examples.tfrecord'},{short_records}"
    changes = {"input_file": both, "phases": ("4@32", "3@64")}
    report = pretraining_workflow.run(options_in(tmp_path, **changes, dry_run=True))
    assert report.count("parameters") == 2
    assert not list(tmp_path.iterdir())
    options = options_in(tmp_path, **changes, do_eval=True)
    with signal_at(5, signal.SIGTERM), pytest.raises(KeyboardInterrupt):
        pretraining_workflow.run(options)
    assert "masked_lm_accuracy = " in pretraining_workflow.run(options)
    lines = metrics_of(tmp_path)
    schedule = schedules.WarmupLinearDecay(1e-3, TOTAL, WARMUP)
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(
        [line["learning_rate"] for line in lines],
        [float(schedule(step)) for step in range(TOTAL)],
        rtol=1e-5,
    )
    # Rows of positions that phase 1 never saw get their first gradient in phase 2.
    first, last = (
        tf.train.load_checkpoint(str(tmp_path / f"model.ckpt-{step}")).get_tensor
        for step in (4, 7)
    )
    name = "bert/embeddings/position_embeddings/adam_v"
    assert not first(name)[32:].any()
    assert last(name)[32:64].any()
    # Adam keeps 0.999 of each second moment in a step.
    name = "bert/pooler/dense/kernel/adam_v"
    assert (last(name) >= 0.99 * first(name)).all()
    task = json.loads((tmp_path / "task.json").read_text())
    assert task["max_seq_length"] == 64


ONE, MINUTE = {"phases": "1@64"}, {"max_train_minutes": 1}


@pytest.mark.parametrize(
    "flags, exit_code, sentence",
    [
        ({"phases": "3x64"}, 2, "--phases=3x64: expected STEPS@LENGTH"),
        ({"phases": "0@64"}, 2, "--phases=0@64: expected STEPS@LENGTH"),
        (ONE | {"num_train_steps": 2}, 2, "--num_train_steps cannot be"),
        (ONE | {"max_seq_length": 32}, 2, "--max_seq_length cannot be"),
        (ONE | MINUTE, 2, "--max_train_minutes cannot"),
        (
            ONE | {"early_stopping_evals": 1, "eval_every_steps": 1},
            2,
            "--early_stopping_evals cannot be",
        ),
        (MINUTE | {"num_train_steps": 9}, 2, "--num_train_steps can"),
        (MINUTE | {"num_warmup_steps": 9}, 2, "--num_warmup_steps c"),
        ({"warmup_proportion": 0.2}, 2, "--warmup_proportion needs"),
        ({"max_train_minutes": 0}, 2, "expected at least 0.001"),
        ({"phases": "1@4096"}, 1, "max_seq_length is 4096, but the model has at most"),
        ({"phases": "1@64,1@16"}, 1, "has a phase of length 16, but the records of"),
    ],
)
def test_a_mistake_is_one_line_before_the_first_phase_trains(
    pretrain, tmp_path, flags, exit_code, sentence
):
    lengths = dict.fromkeys(("max_seq_length", "max_predictions_per_seq"))
    done = pretrain(**lengths | flags, exit_code=exit_code)
    assert sentence in done.refusal
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
