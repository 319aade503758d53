"""The benchmark of GPUs, in a tiny case on the CPU."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

MEASURE = """
import argparse, json, pathlib, sys, gpu, report
report.RESULTS_FILE = pathlib.Path(sys.argv[1])
case = {"model": "bert-tiny", "max_seq_length": 16, "batch_size": 2}
case |= {"num_steps": 1, "num_predictions": 3}
args = argparse.Namespace(num_rounds=2, limit_s=600)
[done] = gpu.measure(gpu.OURS, [case], args)
print("FOUND", json.dumps([done["our_seconds"], done["model_flops"]]))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed"
)
def test_a_pretraining_step_is_measured_on_jax(project_root, tmp_path):
    benchmarks = project_root / "benchmarks"
    paths = [str(project_root), str(benchmarks), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path / "RESULTS.md"],
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
    assert seconds > 0
    assert "| bert-tiny | 16 | 2 |" in (tmp_path / "RESULTS.md").read_text()
    # Three passes over two sequences: both layers' products, scores and context, the
    # head over the vocabulary, and the pooler.
    layer = 2 * 16 * (4 * 128**2 + 2 * 128 * 512) + 4 * 16**2 * 128
    assert flops == 3 * 2 * (2 * layer + 2 * 3 * 128 * (128 + 30522) + 2 * 128**2)
