"""BERT-Large with its slots: four gigabytes, saved and restored once."""

import os
import subprocess
import sys

import pytest

# A step of BERT-Large in memory, then written, or read and compared. Prints the
# seconds and the memory that it took beyond the variables themselves.
MEASURED = """
import sys, time
import numpy as np
import tensorflow as tf
from bert_tf.checkpoints import names
from bert_tf.checkpoints.release import bundle, rotation
from bert_tf.modeling import config, pretrainer
from bert_tf.data.parallel import process_pool

def peak():
    return process_pool.peak_memory_mb() / 1000

folder, action = sys.argv[1:]
model = pretrainer.BertPretrainer(config.BertConfig.named("bert-large-uncased"))
state = {name: w.value for name, w in names.checkpoint_variables(model).items()}
for name, variable in list(state.items()):
    for number, slot in enumerate(names.SLOTS, start=2):
        state[f"{name}/{slot}"] = tf.Variable(tf.zeros_like(variable))
for number, name in enumerate(sorted(state)):
    value = float(number if action == "save" else -1)
    state[name].assign(tf.fill(state[name].shape, value))
before, start = peak(), time.time()
if action == "save":
    rotation.write_parts(folder, 1, {**state, "global_step": np.int64(1)})
    rotation.commit(folder, 1)
else:
    bundle.assign(folder, state)
seconds, after = time.time() - start, peak()
for number, name in enumerate(sorted(state)):
    value = state[name]
    assert float(tf.reduce_min(value)) == float(tf.reduce_max(value)) == number
size = sum(4 * v.shape.num_elements() for v in state.values()) / 1e9
print(f"{action}: {size:.2f} GB in {seconds:.0f} s,", end=" ")
print(f"peak memory {before:.2f} GB before and {after:.2f} GB after")
assert after - before < 1, "all tensors were copied at once"
"""


@pytest.mark.slow
def test_bert_large_with_slots_is_saved_and_restored(tmp_path, project_root, capsys):
    reports = []
    for action in ("save", "restore"):
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, tmp_path, action],
            cwd=project_root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        reports.append(done.stdout)
    data = tmp_path / "model.ckpt-1.data-00000-of-00001"
    assert os.path.getsize(data) > 4e9
    with capsys.disabled():
        print("\n" + "".join(reports))
