"""Checkpoints where a rename is a copy and a deletion, as in object stores.

`ram://`, which is built into TensorFlow, replaces a real store; its rename is patched.
"""

import uuid

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints.release import bundle
from tests import runs


class KilledError(Exception):
    pass


class Store:
    """A folder in memory; what happens in it, and a moment at which to be killed."""

    def __init__(self):
        self.folder = f"ram://{uuid.uuid4().hex}/run"
        self.events = []
        self.killed_at = None

    def rename(self, source, target, overwrite):
        """Copies, then deletes; a copy of an object appears whole."""
        del overwrite
        name = target.rpartition("/")[2]
        self._meet(f"copy {name}")
        with tf.io.gfile.GFile(source, "rb") as file:
            content = file.read()
        if tf.io.gfile.exists(target):
            # ram:// would append to it.
            tf.io.gfile.remove(target)
        with tf.io.gfile.GFile(target, "wb") as file:
            file.write(content)
        self._meet(f"delete what was copied to {name}")
        tf.io.gfile.remove(source)

    def remove(self, path):
        self._meet(f"remove {path.rpartition('/')[2]}")
        tf.io.gfile.remove(path)

    def names(self):
        return sorted(name for name in files.list_folder(self.folder))

    def _meet(self, event):
        self.events.append(event)
        if event == self.killed_at:
            raise KilledError


@pytest.fixture
def store(monkeypatch):
    store = Store()

    class Files:
        def __getattr__(self, name):
            own = {"rename": store.rename, "remove": store.remove}
            return own.get(name) or getattr(tf.io.gfile, name)

    monkeypatch.setattr(files, "_gfile", Files)
    return store


def write(store, step, keep_max=2):
    tensors = {"a": np.full(3, step, "float32"), "global_step": np.int64(step)}
    bundle.write_parts(store.folder, step, tensors)
    bundle.commit(store.folder, step, keep_max=keep_max)


def latest(store):
    """Returns the step of the last checkpoint; its tensors are of that step."""
    prefix = bundle.latest(store.folder)
    found = bundle.read(prefix, ["a", "global_step"])
    assert set(found["a"]) == {found["global_step"]}
    assert prefix == tf.train.latest_checkpoint(store.folder)
    return int(found["global_step"])


def test_no_part_is_renamed_and_the_text_file_comes_last(store):
    write(store, 1)
    # Data and index are objects from the start, there before the file that commits.
    assert store.events == [
        "copy checkpoint",
        "delete what was copied to checkpoint",
    ]
    assert store.names() == [
        "checkpoint",
        "model.ckpt-1.data-00000-of-00001",
        "model.ckpt-1.index",
    ]
    assert latest(store) == 1


@pytest.mark.parametrize(
    "killed_at, step",
    [
        ("copy checkpoint", 2),  # The new one exists but does not count.
        ("delete what was copied to checkpoint", 3),  # It counts.
        ("remove model.ckpt-1.index", 3),
        ("remove model.ckpt-1.data-00000-of-00001", 3),
    ],
)
def test_a_run_killed_while_saving_finds_a_whole_checkpoint(store, killed_at, step):
    write(store, 1)
    write(store, 2)
    store.killed_at = killed_at
    with pytest.raises(KilledError):
        write(store, 3)
    assert latest(store) == step
    # The leftovers are removed with the next checkpoint.
    store.killed_at = None
    write(store, 4)
    assert latest(store) == 4
    assert not [name for name in store.names() if name.endswith(".partial")]
    kept = {name.split(".")[1] for name in store.names() if "ckpt" in name}
    assert {f"ckpt-{step}", "ckpt-4"} <= kept


@pytest.mark.slow
def test_a_run_in_a_store_is_continued_and_ends_as_a_local_one(
    store, tmp_path, pretrain
):
    def run(folder):
        pretrain(
            output_dir=folder,
            do_eval=True,
            num_train_steps=6,
            learning_rate=1e-3,
            num_warmup_steps=0,
            save_checkpoints_steps=3,
        )
        return runs.tensors(folder)

    expected = run(str(tmp_path / "run"))
    run(store.folder)
    for part in ("data-00000-of-00001", "index"):
        store.remove(f"{store.folder}/model.ckpt-6.{part}")
    found = run(store.folder)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    with files.open_file(f"{store.folder}/metrics.jsonl") as file:
        assert file.read().count("\n") == 6
