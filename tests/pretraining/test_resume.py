"""A run killed at any time ends with the same weights as an uninterrupted one."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

NUM_TRAIN_STEPS = 160

# Runs the tool and kills it before a file of a checkpoint gets its name: the index,
# whose data has its name already, or the file `checkpoint`, which commits them.
KILLED_WRITES = """
import os, runpy, signal
from bert_tf import files

rename = files.rename

def rename_or_die(source, target):
    if target.endswith({ending!r}):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)

files.rename = rename_or_die
runpy.run_path("tools/run_pretraining.py", run_name="__main__")
"""


@pytest.fixture
def command(recorded_flags):
    """Returns a function from an output_dir to the flags of a short run."""

    def flags(output_dir):
        given = {
            **recorded_flags,
            "output_dir": output_dir,
            "num_train_steps": NUM_TRAIN_STEPS,
            "num_warmup_steps": 20,
            "learning_rate": 1e-3,
            "save_checkpoints_steps": 7,
            "iterations_per_loop": 2,
            "keep_checkpoint_max": 2,
        }
        return [f"--{name}={value}" for name, value in given.items()]

    return flags


def run(root, program, flags):
    """Runs a program; returns its exit code, minus the signal that ended it."""
    command = [sys.executable, *program, *flags]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode


def assert_same_weights(output_dir, reference_dir):
    last = f"model.ckpt-{NUM_TRAIN_STEPS}"
    ours = tf.train.load_checkpoint(str(output_dir / last))
    reference = tf.train.load_checkpoint(str(reference_dir / last))
    for name in reference.get_variable_to_shape_map():
        np.testing.assert_array_equal(
            ours.get_tensor(name), reference.get_tensor(name), err_msg=name
        )


def test_killed_at_any_time_it_ends_with_identical_weights(
    command, tmp_path, project_root, self_signalling
):
    reference_dir, output_dir = tmp_path / "reference", tmp_path / "killed"
    tool = ["tools/run_pretraining.py"]
    assert run(project_root, tool, command(reference_dir)) == 0
    for program in (
        self_signalling("run_pretraining", 25, signal.SIGKILL),
        KILLED_WRITES.format(ending=".index"),
        KILLED_WRITES.format(ending="/checkpoint"),
    ):
        code = run(project_root, ["-c", program], command(output_dir))
        assert code == -signal.SIGKILL
    assert run(project_root, tool, command(output_dir)) == 0
    assert_same_weights(output_dir, reference_dir)
    steps = [
        json.loads(line)["step"]
        for line in (output_dir / "metrics.jsonl").read_text().splitlines()
    ]
    assert steps == list(range(1, NUM_TRAIN_STEPS + 1))
    kept = sorted(path.name for path in output_dir.glob("model.ckpt-*"))
    assert len(kept) == 4, kept  # Two checkpoints, of two files each.
