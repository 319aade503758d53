import json
import os
import signal

import pytest

from bert_tf.training import interrupts
from bert_tf.training import run_folder


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_waits_and_the_second_acts():
    with interrupts.Interrupts() as interrupted:
        assert not interrupted.pending
        press_ctrl_c()
        assert interrupted.pending
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupted_run_goes_on_as_if_nothing_had_been(
    golden, tmp_path, run_tool, monkeypatch
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

    assert train("undisturbed").exit_code == 0
    log = run_folder.RunFolder.log

    def log_and_press(self, step, values, *, tag="train"):
        log(self, step, values, tag=tag)
        if step == 6:
            press_ctrl_c()

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.RunFolder, "log", log_and_press)
        done = train("interrupted")
    assert done.exit_code == 130
    assert len(record("interrupted")) < len(record("undisturbed"))
    assert train("interrupted").exit_code == 0
    assert record("interrupted") == record("undisturbed")
