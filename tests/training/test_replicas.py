"""The number of replicas changes neither the losses nor the weights of a run.

Two workers are in `test_multi_worker.py`, all tasks in `test_task_contract.py`.
"""

import json

import numpy as np
import pytest

from bert_tf.checkpoints.release import bundle

NUM_TRAIN_STEPS = 50
RELATIVE = 1e-5


@pytest.fixture
def pretrain(golden, tmp_path, run_tool):
    """Runs the tool; returns losses and norms by step, and the last weights."""

    def run(name, **changes):
        model = golden / "model"
        given = {
            "input_file": model / "examples.tfrecord",
            "output_dir": tmp_path / name,
            "bert_config_file": model / "bert_config.json",
            "do_train": True,
            "train_batch_size": 8,
            "max_seq_length": 64,
            "max_predictions_per_seq": 10,
            "num_train_steps": NUM_TRAIN_STEPS,
            "num_warmup_steps": 10,
            "learning_rate": 1e-3,
            "save_checkpoints_steps": 20,
            "log_every_steps": 1,
            **changes,
        }
        done = run_tool("run_pretraining", *(f"--{k}={v}" for k, v in given.items()))
        assert done.exit_code == 0, done.stderr
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        metrics = [json.loads(line) for line in lines]
        assert [line["step"] for line in metrics] == list(range(1, NUM_TRAIN_STEPS + 1))
        prefix = tmp_path / name / f"model.ckpt-{NUM_TRAIN_STEPS}"
        curve = [(line["loss"], line["global_grad_norm"]) for line in metrics]
        return np.array(curve), bundle.read(
            prefix, bundle.read_names_and_shapes(prefix)
        )

    return run


def assert_same(found, expected):
    np.testing.assert_allclose(found[0], expected[0], rtol=RELATIVE)
    assert found[1].keys() == expected[1].keys()
    for name, array in expected[1].items():
        scale = max(np.max(np.abs(array)), 1e-3)
        assert np.max(np.abs(found[1][name] - array)) <= RELATIVE * scale, name


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"optimizer": "lamb", "gradient_accumulation_steps": 2},
        {"optimizer": "lamb", "recompute_layers": True, "jit_compile": True},
    ],
    ids=str,
)
def test_replicas_go_the_way_of_one_device(pretrain, tmp_path, flags):
    expected = pretrain("one", device="cpu", **flags)
    for replicas in (2, 4):
        spread = {"device": "mirrored", "num_replicas": replicas}
        assert_same(pretrain(f"{replicas}", **spread, **flags), expected)
    # A run that starts on one device can resume on two.
    (tmp_path / "moved").mkdir()
    for path in (tmp_path / "one").glob("*"):
        if path.is_file() and f"-{NUM_TRAIN_STEPS}" not in path.name:
            (tmp_path / "moved" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "moved" / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-20"\n'
    )
    moved = pretrain("moved", device="mirrored", num_replicas=2, **flags)
    assert_same(moved, expected)
