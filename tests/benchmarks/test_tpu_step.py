"""The pretraining step, compiled for a TPU without having one."""

import importlib.util
import pathlib

import pytest

from bert_tf.modeling import config as config_module

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent.parent / "benchmarks"


@pytest.fixture
def tpu_step():
    """The script, as a module."""
    path = BENCHMARKS / "tpu_step.py"
    spec = importlib.util.spec_from_file_location("tpu_step", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("jax", "libtpu")),
    reason="needs JAX and libtpu: pip install -e '.[tpu-compile]'",
)
def test_a_whole_step_is_compiled_for_a_tpu(tpu_step):
    config = config_module.BertConfig.of_size("L-1_H-128", vocab_size=128)
    settings = {
        "slice_name": "v5e-4",
        "config": config.to_dict(),
        "batch_size": 32,
        "max_seq_length": 128,
        "max_predictions_per_seq": 8,
        "dtype": "mixed_bfloat16",
        "recompute_layers": False,
    }
    step = tpu_step.compile_step(settings)
    assert step["fits"]
    # At least weights and two slots, in float32.
    assert step["memory_bytes"] > 3 * 4 * 100_000
    assert step["flops"] > 0
