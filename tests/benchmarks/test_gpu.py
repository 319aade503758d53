"""The benchmark of GPUs, in a tiny case on the CPU."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

MEASURE = """
import json, gpu
case = {"model": "tiny", "max_seq_length": 16, "batch_size": 2}
case |= {"num_steps": 1, "num_predictions": 3}
seconds, facts, _ = gpu.measure(case, 2)
print("FOUND", json.dumps([seconds[gpu.OURS], facts["model_flops"]]))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed"
)
def test_a_pretraining_step_is_measured_on_jax(project_root, tmp_path):
    benchmarks = project_root / "benchmarks"
    paths = [str(project_root), str(benchmarks), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        cwd=benchmarks,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "BERT_TF_PEERS_PYTHON": str(tmp_path / "none"),
            "JAX_PLATFORMS": "cpu",
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    [line] = [one for one in done.stdout.splitlines() if one.startswith("FOUND")]
    seconds, flops = json.loads(line.removeprefix("FOUND"))
    assert len(seconds) == 2
    assert min(seconds) > 0
    # Three passes over two sequences: the layer's products, scores and context, the
    # head over 64 pieces, and the pooler.
    layer = 2 * 16 * (4 * 32**2 + 2 * 32 * 32) + 4 * 16**2 * 32
    assert flops == 3 * 2 * (layer + 2 * 3 * 32 * (32 + 64) + 2 * 32**2)
