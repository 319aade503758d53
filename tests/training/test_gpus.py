"""What is set up before TensorFlow uses a GPU. The GPU is a double."""

import logging
import types

import pytest
import tensorflow as tf

from bert_tf.training import distribution
from bert_tf.training import options as training_options


@pytest.fixture
def found(monkeypatch):
    """One GPU; the list has the GPUs whose memory grows."""
    growing = []
    config = tf.config.experimental
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["one GPU"])
    monkeypatch.setattr(
        config, "set_memory_growth", lambda gpu, grows: growing.append((gpu, grows))
    )
    monkeypatch.setattr(
        config, "get_device_details", lambda gpu: {"compute_capability": (9, 0)}
    )
    return growing


def device_options(**values):
    return training_options.DeviceOptions(**values)


def test_memory_grows_unless_the_user_decides(found, monkeypatch):
    assert distribution.prepare_gpus(device_options()) == ["one GPU"]
    assert found == [("one GPU", True)]
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false")
    distribution.prepare_gpus(device_options())
    assert len(found) == 1


@pytest.mark.parametrize(
    "device, buckets, given, is_compiled",
    [
        ("GPU", (), None, True),
        ("GPU", (64, 128), None, False),  # Each length would be compiled.
        ("GPU", (64, 128), True, True),
        ("GPU", (), False, False),
        ("CPU", (), None, False),
        ("CPU", (), True, True),
    ],
)
def test_xla_is_the_default_on_gpus(device, buckets, given, is_compiled, caplog):
    extended = types.SimpleNamespace(worker_devices=(f"/device:{device}:0",))
    strategy = types.SimpleNamespace(extended=extended)
    options = training_options.TrainerOptions(
        output_dir="run", length_buckets=buckets, jit_compile=given
    )
    with caplog.at_level(logging.INFO):
        assert distribution.compiles_step(options, strategy) == is_compiled
    is_logged = "--jit_compile=false turns it off" in caplog.text
    assert is_logged == (is_compiled and given is None)


@pytest.mark.parametrize("deterministic", [False, True])
def test_deterministic_operations_are_turned_on_with_their_flag(
    monkeypatch, deterministic
):
    turned_on = []
    monkeypatch.setattr(
        tf.config.experimental, "enable_op_determinism", lambda: turned_on.append(1)
    )
    distribution.create_strategy(
        device_options(device="cpu", deterministic=deterministic)
    )
    assert bool(turned_on) == deterministic
