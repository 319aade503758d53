"""Two workers on one machine train like one device, also after a kill."""

import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from bert_tf.training import saving
from tests import runs

NUM_TRAIN_STEPS = 20
RELATIVE = 1e-5
# run_pretraining with a clock that advances some seconds at every reading.
WITH_CLOCK = """
import itertools, runpy
from bert_tf.training import stopping
ticks = itertools.count(step={seconds})
stopping._now = lambda: float(next(ticks))
runpy.run_path("tools/run_pretraining.py", run_name="__main__")
"""


@pytest.fixture
def flags(recorded_flags, dropout_config):
    """Returns a function from an output_dir to the flags of a short run."""

    def of(output_dir, **changes):
        given = {
            **recorded_flags,
            "bert_config_file": dropout_config,
            "output_dir": output_dir,
            "do_eval": True,
            "num_train_steps": NUM_TRAIN_STEPS,
            "num_warmup_steps": 4,
            "learning_rate": 1e-3,
            "save_checkpoints_steps": 4,
            "iterations_per_loop": 1,
            **changes,
        }
        return runs.flags_of(given)

    return of


def two_addresses():
    listeners = [socket.create_server(("localhost", 0)) for _ in range(2)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return [f"localhost:{port}" for port in ports]


def start_both(root, flags, tool="run_pretraining", programs=(None, None)):
    """Starts two workers, which run the tool or a program given as text."""
    cluster = {"worker": two_addresses()}
    processes = []
    for index, program in enumerate(programs):
        task = {"type": "worker", "index": index}
        code = ["-c", program] if program else [os.path.join("tools", f"{tool}.py")]
        config = json.dumps({"cluster": cluster, "task": task})
        process = subprocess.Popen(
            [sys.executable, *code, *flags, "--device=multi_worker"],
            cwd=root,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CONFIG": config},
        )
        processes.append(process)
    return processes


def outputs_of(processes):
    try:
        return [process.communicate(timeout=280) for process in processes]
    finally:
        for process in processes:
            process.kill()


def assert_same_curve(run, reference):
    found, expected = runs.metrics(run), runs.metrics(reference)
    assert [line["step"] for line in found] == list(range(1, NUM_TRAIN_STEPS + 1))
    for name in ("loss", "masked_lm_loss", "global_grad_norm", "learning_rate"):
        np.testing.assert_allclose(
            [line[name] for line in found],
            [line[name] for line in expected],
            rtol=RELATIVE,
        )


def test_two_workers_go_the_way_of_one_device_even_when_one_is_killed(
    flags, tmp_path, project_root, run_tool, signal_at, self_signalling
):
    reference, run = tmp_path / "one", tmp_path / "two"
    run_tool("run_pretraining", *flags(reference))
    # One device takes the first steps, then the run moves to two workers.
    with signal_at(5, signal.SIGTERM):
        run_tool("run_pretraining", *flags(run), exit_code=143)
    assert len(runs.metrics(run)) == 5

    killed = self_signalling("run_pretraining", 11, signal.SIGKILL)
    chief, other = start_both(project_root, flags(run), programs=(None, killed))
    (_, stderr), _ = outputs_of([chief, other])
    assert chief.returncode == 1
    assert stderr.strip().splitlines()[-1] == (
        "run_pretraining: Lost the connection to another worker. Start all workers "
        "again with the same command: training resumes from the latest checkpoint."
    )
    assert "Traceback" not in stderr

    processes = start_both(project_root, flags(run))
    for process, (_, stderr) in zip(processes, outputs_of(processes), strict=True):
        assert process.returncode == 0, stderr
    assert_same_curve(run, reference)
    runs.assert_near_tensors(runs.tensors(run), runs.tensors(reference), RELATIVE)
    # Every worker evaluates its share; the chief writes the result of all.
    assert runs.scores(run) == pytest.approx(runs.scores(reference), rel=RELATIVE)


@pytest.mark.long
def test_two_workers_end_together_when_the_time_of_the_first_is_up(
    flags, tmp_path, project_root
):
    run = tmp_path / "run"
    given = [
        flag
        for flag in flags(run, max_train_minutes=1, warmup_proportion=0.2)
        if not flag.startswith(("--num_train_steps", "--num_warmup_steps"))
    ]
    # Only the chief's clock counts. By the other one the time is up at once.
    programs = [WITH_CLOCK.format(seconds=seconds) for seconds in (1, 1000)]
    processes = start_both(project_root, given, programs=programs)
    for process, (_, stderr) in zip(processes, outputs_of(processes), strict=True):
        assert process.returncode == 0, stderr
    # The clock advances three times per step: 60 seconds are about 20 steps.
    runs.assert_rate_follows_time(runs.metrics(run), warmup=0.2)
    assert saving.read_train_seconds(run) >= 60
    assert (run / "eval_results.txt").exists()


@pytest.mark.long
def test_two_workers_fine_tune_score_and_predict_as_one_device(
    golden, tmp_path, project_root, run_tool
):
    # Each worker's own share would often fit a shorter bucket.
    words = {
        "rain": ("wet", "rain and a cloud " * 9),
        "sun": ("dry", "heat and the light " * 9),
    }
    rows = [f"{text}\t{label}" for label, texts in words.items() for text in texts]
    (tmp_path / "train.tsv").write_text("\n".join(["text\tlabel", *rows * 4]))

    def flags(output_dir):
        given = {
            "output_dir": output_dir,
            "bert_config_file": golden / "model" / "bert_config.json",
            "vocab_file": golden / "vocab.txt",
            "train_file": tmp_path / "train.tsv",
            "eval_file": tmp_path / "train.tsv",
            "predict_file": tmp_path / "train.tsv",
            "do_train": True,
            "do_eval": True,
            "do_predict": True,
            "max_seq_length": 64,
            "train_batch_size": 2,
            "learning_rate": 1e-3,
            "num_train_epochs": 2,
            "eval_every_steps": 6,
        }
        return runs.flags_of(given)

    one, two = tmp_path / "one", tmp_path / "two"
    run_tool("run_classifier", *flags(one))
    processes = start_both(project_root, flags(two), tool="run_classifier")
    for process, (_, stderr) in zip(processes, outputs_of(processes), strict=True):
        assert process.returncode == 0, stderr
    for name in ("loss", "eval_loss"):
        found, expected = (
            [line[name] for line in runs.metrics(folder) if name in line]
            for folder in (two, one)
        )
        assert found == pytest.approx(expected, rel=RELATIVE)
    assert runs.scores(two) == pytest.approx(runs.scores(one), rel=RELATIVE)
    found, expected = (np.loadtxt(folder / "test_results.tsv") for folder in (two, one))
    assert found.shape == (16, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert sorted(path.name for path in (two / "best").iterdir()) == sorted(
        path.name for path in (one / "best").iterdir()
    )
