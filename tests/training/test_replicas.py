"""The number of replicas changes neither the losses nor the weights of a run.

Two workers are in `test_multi_worker.py`, all tasks in `test_task_contract.py`.
"""

import functools

import numpy as np
import pytest

from tests import ring
from tests import runs

NUM_TRAIN_STEPS = 50
RELATIVE = 1e-5
long = functools.partial(pytest.param, marks=pytest.mark.long)


@pytest.fixture
def train(pretrain, tmp_path):
    """Trains into a folder; returns losses and norms by step, and the last tensors."""

    def run(name, **changes):
        pretrain(
            output_dir=tmp_path / name,
            train_batch_size=8,
            num_train_steps=NUM_TRAIN_STEPS,
            num_warmup_steps=10,
            learning_rate=1e-3,
            save_checkpoints_steps=20,
            **changes,
        )
        lines = runs.metrics(tmp_path / name)
        assert [line["step"] for line in lines] == list(range(1, NUM_TRAIN_STEPS + 1))
        curve = [(line["loss"], line["global_grad_norm"]) for line in lines]
        return np.array(curve), runs.tensors(tmp_path / name)

    return run


def assert_same(found, expected):
    np.testing.assert_allclose(found[0], expected[0], rtol=RELATIVE)
    runs.assert_near_tensors(found[1], expected[1], RELATIVE)


# Dropout is on; `tests/pretraining/test_trajectory.py` divides a run without it.
@pytest.mark.parametrize(
    "flags",
    [
        ring.slow({}),
        long({"optimizer": "lamb", "gradient_accumulation_steps": 2}),
        long({"optimizer": "lamb", "recompute_layers": True, "jit_compile": True}),
    ],
    ids=str,
)
def test_replicas_go_the_way_of_one_device(train, tmp_path, flags):
    expected = train("one", device="cpu", **flags)
    for replicas in (2, 4):
        spread = {"device": "mirrored", "num_replicas": replicas}
        assert_same(train(f"{replicas}", **spread, **flags), expected)
    # A run that starts on one device can resume on two.
    stopped = {"step": 20, "last_step": NUM_TRAIN_STEPS}
    runs.copy_stopped(tmp_path / "one", tmp_path / "moved", **stopped)
    moved = train("moved", device="mirrored", num_replicas=2, **flags)
    assert_same(moved, expected)
