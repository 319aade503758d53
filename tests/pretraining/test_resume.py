"""A run killed at any time ends with the same weights as an undisturbed one."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

NUM_TRAIN_STEPS = 160

# Runs the tool with every checkpoint write slowed down in its middle: between data
# and index, and again before the file `checkpoint` that commits them.
SLOW_WRITES = """
import pathlib, sys, time
from bert_tf import files

marker = pathlib.Path(sys.argv.pop(1))
real_rename = files.rename

def slow_rename(source, target):
    marker.touch()
    time.sleep(0.2)
    real_rename(source, target)
    time.sleep(0.2)

files.rename = slow_rename
sys.path.insert(0, sys.argv.pop(1))
import run_pretraining
sys.exit(run_pretraining.main(sys.argv[1:]))
"""


@pytest.fixture
def command(golden, tmp_path):
    """Returns a function from an output_dir to the flags of a short run."""
    model = golden / "model"

    def flags(output_dir):
        return [
            f"--input_file={model / 'examples.tfrecord'}",
            f"--output_dir={output_dir}",
            f"--bert_config_file={model / 'bert_config.json'}",
            "--do_train",
            "--train_batch_size=4",
            "--max_seq_length=64",
            "--max_predictions_per_seq=10",
            f"--num_train_steps={NUM_TRAIN_STEPS}",
            "--num_warmup_steps=20",
            "--learning_rate=1e-3",
            "--save_checkpoints_steps=7",
            "--iterations_per_loop=2",
            "--log_every_steps=1",
            "--keep_checkpoint_max=2",
        ]

    return flags


def start(root, flags, *, marker=None):
    tools = str(root / "tools")
    program = [sys.executable, os.path.join(tools, "run_pretraining.py")]
    if marker:
        program = [sys.executable, "-c", SLOW_WRITES, str(marker), tools]
    return subprocess.Popen(
        [*program, *flags],
        cwd=root,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process):
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr


def kill_when(process, is_time):
    deadline = time.monotonic() + 120
    while not is_time():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "The run did not get that far."
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def num_logged(output_dir):
    metrics = output_dir / "metrics.jsonl"
    return metrics.read_text().count("\n") if metrics.exists() else 0


def assert_same_weights(output_dir, reference_dir):
    last = f"model.ckpt-{NUM_TRAIN_STEPS}"
    ours = tf.train.load_checkpoint(str(output_dir / last))
    reference = tf.train.load_checkpoint(str(reference_dir / last))
    for name in reference.get_variable_to_shape_map():
        np.testing.assert_array_equal(
            ours.get_tensor(name), reference.get_tensor(name), err_msg=name
        )


def test_killed_at_random_moments_it_ends_with_identical_weights(
    command, tmp_path, project_root
):
    reference_dir, output_dir = tmp_path / "reference", tmp_path / "killed"
    finish(start(project_root, command(reference_dir)))

    rng = random.Random(time.time_ns())
    moments = sorted(rng.sample(range(10, NUM_TRAIN_STEPS - 20), 2))
    print(f"Killed after steps {moments}.")
    for moment in moments:
        process = start(project_root, command(output_dir))
        kill_when(process, lambda: num_logged(output_dir) >= moment)  # noqa: B023

    marker = tmp_path / "writing"
    process = start(project_root, command(output_dir), marker=marker)
    kill_when(process, marker.exists)

    finish(start(project_root, command(output_dir)))
    assert_same_weights(output_dir, reference_dir)
    steps = [
        json.loads(line)["step"]
        for line in (output_dir / "metrics.jsonl").read_text().splitlines()
    ]
    assert steps == list(range(1, NUM_TRAIN_STEPS + 1))
    kept = sorted(path.name for path in output_dir.glob("model.ckpt-*"))
    assert len(kept) == 4, kept  # Two checkpoints, of two files each.
