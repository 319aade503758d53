"""A run killed at any time ends with the same weights as an uninterrupted one."""

import signal
import subprocess
import sys

import pytest

from tests import ring
from tests import runs

NUM_TRAIN_STEPS = 20

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
def command(recorded_flags, dropout_config):
    """Returns a function from an output_dir to the flags of a short run."""

    def flags(output_dir):
        given = {
            **recorded_flags,
            "bert_config_file": dropout_config,
            "output_dir": output_dir,
            "num_train_steps": NUM_TRAIN_STEPS,
            "num_warmup_steps": 5,
            "learning_rate": 1e-3,
            "save_checkpoints_steps": 3,
            "iterations_per_loop": 2,
            "keep_checkpoint_max": 2,
        }
        return runs.flags_of(given)

    return flags


# In `make test`, `tests/checkpoints/release/test_bundle.py` kills a run while it
# writes a checkpoint.
@pytest.mark.parametrize("endings", [(), ring.slow((".index", "/checkpoint"))])
def test_killed_at_any_time_it_ends_with_identical_weights(
    command, tmp_path, project_root, run_tool, self_signalling, endings
):
    reference_dir, output_dir = tmp_path / "reference", tmp_path / "killed"
    run_tool("run_pretraining", *command(reference_dir))
    for program in (
        self_signalling("run_pretraining", 8, signal.SIGKILL),
        *(KILLED_WRITES.format(ending=ending) for ending in endings),
    ):
        killed = [sys.executable, "-c", program, *command(output_dir)]
        done = subprocess.run(killed, cwd=project_root, capture_output=True)
        assert done.returncode == -signal.SIGKILL
        assert b"Traceback" not in done.stderr, done.stderr.decode()
    run_tool("run_pretraining", *command(output_dir))
    runs.assert_same_tensors(output_dir, reference_dir)
    steps = [line["step"] for line in runs.metrics(output_dir)]
    assert steps == list(range(1, NUM_TRAIN_STEPS + 1))
    kept = sorted(path.name for path in output_dir.glob("model.ckpt-*"))
    assert len(kept) == 4, kept  # Two checkpoints, of two files each.
