import json
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.release import rotation
from bert_tf.training import interrupts
from bert_tf.training import run_folder


def send(number):
    os.kill(os.getpid(), number)


def test_the_first_ctrl_c_waits_and_the_second_acts():
    before = signal.getsignal(signal.SIGINT)
    with interrupts.Interrupts() as interrupted:
        assert not interrupted.pending
        send(signal.SIGINT)
        assert interrupted.pending
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_waits_however_often_it_comes():
    before = signal.getsignal(signal.SIGTERM)
    with interrupts.Interrupts() as interrupted:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert interrupted.pending
        with pytest.raises(KeyboardInterrupt) as raised:
            interrupted.interrupt("step 3 is saved")
    assert raised.value.args == (signal.SIGTERM, "step 3 is saved")
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    "number, word, exit_code",
    [
        (signal.SIGINT, "interrupted", 130),
        # Also `test_phases.py` and `test_multi_worker.py` send it to a run.
        pytest.param(signal.SIGTERM, "terminated", 143, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(
    golden, tmp_path, run_tool, monkeypatch, number, word, exit_code
):
    model = golden / "model"

    def train(name):
        return run_tool(
            "run_pretraining",
            f"--input_file={model / 'examples.tfrecord'}",
            f"--output_dir={tmp_path / name}",
            f"--bert_config_file={model / 'bert_config.json'}",
            "--max_seq_length=64",
            "--max_predictions_per_seq=10",
            "--train_batch_size=4",
            "--num_train_steps=12",
            "--num_warmup_steps=2",
            "--log_every_steps=1",
            "--eval_every_steps=4",
            "--do_train",
        )

    def record(name):
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        return [
            {
                key: value
                for key, value in json.loads(line).items()
                if "second" not in key
            }
            for line in lines
        ]

    assert train("uninterrupted").exit_code == 0
    log = run_folder.RunFolder.log

    def log_and_send(self, step, values, *, tag="train"):
        log(self, step, values, tag=tag)
        if step == 6:
            send(number)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.RunFolder, "log", log_and_send)
        done = train("interrupted")
    assert done.exit_code == exit_code
    folder = tmp_path / "interrupted"
    step = int(rotation.latest(folder).rpartition("-")[2])
    assert done.stderr.splitlines()[-1] == (
        f"run_pretraining: {word}; step {step} is saved in {folder}. Run the same "
        "command again; training continues from its last checkpoint."
    )
    assert len(record("interrupted")) < len(record("uninterrupted"))
    assert train("interrupted").exit_code == 0
    assert record("interrupted") == record("uninterrupted")
    resumed, expected = (
        tf.train.load_checkpoint(str(tmp_path / name / "model.ckpt-12"))
        for name in ("interrupted", "uninterrupted")
    )
    for name in expected.get_variable_to_shape_map():
        np.testing.assert_array_equal(
            resumed.get_tensor(name), expected.get_tensor(name), err_msg=name
        )
