"""A folder of an interrupted 2018 run can be resumed as is.

`test_trajectory` shows that twelve steps of ours end where those of 2018 ended. Both
runs must therefore go on alike.
"""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests import runs

STEP, LAST_STEP = 12, 16


@pytest.fixture
def interrupted(golden, tmp_path):
    """An output_dir of the 2018 run_pretraining.py, moved here from another machine."""
    run = tmp_path / "run"
    run.mkdir()
    for path in (golden / "model").glob("trained.ckpt.*"):
        shutil.copy(path, run / path.name.replace("trained.ckpt", f"model.ckpt-{STEP}"))
    (run / f"model.ckpt-{STEP}.meta").write_bytes(b"a graph")
    (run / "graph.pbtxt").write_text("node {}")
    (run / "events.out.tfevents.1541000000.host").write_bytes(b"")
    (run / "eval").mkdir()
    (run / "checkpoint").write_text(
        f'model_checkpoint_path: "/home/me/run/model.ckpt-{STEP}"\n'
        'all_model_checkpoint_paths: "/home/me/run/model.ckpt-8"\n'
        f'all_model_checkpoint_paths: "/home/me/run/model.ckpt-{STEP}"\n'
    )
    return run


def test_it_goes_on_with_slots_step_rate_and_order(
    interrupted, golden, tmp_path, pretrain
):
    model = golden / "model"
    settings = json.loads((model / "bert_config.json").read_text())
    settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "bert_config.json").write_text(json.dumps(settings))
    flags = {
        "init_checkpoint": model / "bert_model.ckpt",
        "bert_config_file": tmp_path / "bert_config.json",
        "num_warmup_steps": 4,
        "learning_rate": 1e-3,
        "shuffle_buffer_size": 1,
    }
    ours = tmp_path / "ours"
    for run, last in ((ours, STEP), (ours, LAST_STEP), (interrupted, LAST_STEP)):
        pretrain(output_dir=run, num_train_steps=last, **flags)
    logged = runs.metrics(interrupted)
    assert [line["step"] for line in logged] == list(range(STEP + 1, LAST_STEP + 1))
    for line, expected in zip(logged, runs.metrics(ours)[STEP:], strict=True):
        for name in ("loss", "global_grad_norm"):
            assert line[name] == pytest.approx(expected[name], rel=1e-4)
    rates = [1e-3 * (1 - step / LAST_STEP) for step in range(STEP + 1, LAST_STEP + 1)]
    assert [line["learning_rate"] for line in logged] == pytest.approx(rates)
    tensors = runs.tensors(interrupted)
    assert tensors.keys() == runs.tensors(ours).keys()
    for name, expected in runs.tensors(ours).items():
        if "/adam_" not in name:  # Some slots are noise: the bias of a key is useless.
            error = np.linalg.norm(tensors[name] - expected)
            assert error <= 1e-4 * np.linalg.norm(expected), name
    # What the 2018 code left is still there, and TensorFlow finds the new checkpoint.
    left = {path.name for path in interrupted.iterdir()}
    assert {
        "graph.pbtxt",
        "events.out.tfevents.1541000000.host",
        f"model.ckpt-{STEP}.index",
        f"model.ckpt-{STEP}.meta",
    } <= left
    latest = tf.train.latest_checkpoint(str(interrupted))
    assert latest == str(interrupted / f"model.ckpt-{LAST_STEP}")
