"""The release's checkpoint format: written, read, and kept, also by a killed run."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints.release import bundle

TENSORS = {
    "bert/pooler/dense/kernel": np.arange(6, dtype="float32").reshape(2, 3),
    "global_step": np.int64(7),
    "a": np.float32(0.5),
}


@pytest.fixture
def copied(released, tmp_path):
    """Prefix of a copy that a test may damage."""
    for path in released.glob("bert_model.ckpt*"):
        target = tmp_path / path.name
        shutil.copyfile(path, target)
    return tmp_path / "bert_model.ckpt"


def read_all(path):
    return bundle.read(path, bundle.read_names_and_shapes(path))


def test_tensorflow_reads_by_name_what_was_written(tmp_path):
    prefix = tmp_path / "folder" / "model.ckpt"
    bundle.save(prefix, {**TENSORS, "variable": tf.Variable([1.0, 2.0])})
    reader = tf.train.load_checkpoint(os.fspath(prefix))
    assert reader.get_variable_to_shape_map() == {
        "bert/pooler/dense/kernel": [2, 3],
        "global_step": [],
        "a": [],
        "variable": [2],
    }
    assert reader.get_variable_to_dtype_map()["global_step"] == tf.int64
    for name, tensor in bundle.read(prefix, TENSORS).items():
        np.testing.assert_array_equal(tensor, TENSORS[name])
        np.testing.assert_array_equal(reader.get_tensor(name), tensor)
    with pytest.raises(ValueError, match="has no tensor b"):
        bundle.read(prefix, ["b"])
    assert sorted(os.listdir(tmp_path / "folder")) == [
        "model.ckpt.data-00000-of-00001",
        "model.ckpt.index",
    ]


@pytest.mark.parametrize(
    "path, error, message",
    [
        ("bert_model.ckpt.index", ValueError, "one file .* share: .*bert_model.ckpt$"),
        ("bert_model.ckpt.data-00000-of-00001", ValueError, "one file of a checkpoint"),
        ("absent.ckpt", FileNotFoundError, r"there is no .*absent\.ckpt\.index"),
    ],
)
def test_what_is_no_prefix_is_refused(released, path, error, message):
    with pytest.raises(error, match=message):
        read_all(released / path)


def _cut(path):
    path.write_bytes(path.read_bytes()[:1000])


def _change_byte(path):
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [_cut, _change_byte])
def test_a_damaged_data_file_is_refused(copied, damage):
    damage(copied.with_name(f"{copied.name}.data-00000-of-00001"))
    with pytest.raises(ValueError, match=r"damaged or truncated \(.*\); copy it again"):
        read_all(copied)


def test_a_failing_write_leaves_nothing_behind(tmp_path, monkeypatch):
    bundle.save(tmp_path / "model.ckpt", TENSORS)

    def fail(*, prefix, **_):
        pathlib.Path(f"{prefix}.data-00000-of-00001.tempstate1").write_bytes(b"half")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.raw_ops, "SaveV2", fail)
    with pytest.raises(OSError, match="cannot be written: No space left on device"):
        bundle.save(tmp_path / "model.ckpt", {"a": np.zeros(3, "float32")})
    assert len(os.listdir(tmp_path)) == 2
    np.testing.assert_array_equal(
        bundle.read(tmp_path / "model.ckpt", ["a"])["a"], TENSORS["a"]
    )


# The checkpoints of a run.


def tensors(step):
    return {"a": np.full(3, step, "float32"), "global_step": np.int64(step)}


def write(folder, *steps, keep_max=5):
    for step in steps:
        bundle.write_parts(folder, step, tensors(step))
        bundle.commit(folder, step, keep_max=keep_max)


def steps_in(folder):
    found = {
        int(name.split("-")[1].split(".")[0])
        for name in os.listdir(folder)
        if name.startswith("model.ckpt-")
    }
    return sorted(found)


def test_the_files_appear_in_order_and_tensorflow_finds_them(tmp_path, monkeypatch):
    appeared = []
    rename = files.rename

    def record(source, target):
        appeared.append(os.path.basename(target))
        rename(source, target)

    monkeypatch.setattr(files, "rename", record)
    write(tmp_path, 4)
    assert appeared == [
        "model.ckpt-4.data-00000-of-00001",
        "model.ckpt-4.index",
        "checkpoint",
    ]
    write(tmp_path, 30)
    state = tf.train.get_checkpoint_state(tmp_path)
    assert state.model_checkpoint_path == bundle.latest(tmp_path)
    assert list(state.all_model_checkpoint_paths) == [
        str(tmp_path / "model.ckpt-4"),
        str(tmp_path / "model.ckpt-30"),
    ]


def test_a_checkpoint_whose_removal_was_interrupted_goes(tmp_path):
    write(tmp_path, 1, 2, 3)
    (tmp_path / "model.ckpt-1.index").unlink()  # `_remove` begins with the index.
    (tmp_path / f".model.ckpt-4.{'0' * 32}.partial.index").touch()
    bundle.remove_leftovers(tmp_path)
    assert steps_in(tmp_path) == [2, 3]
    assert [os.path.basename(p) for p in bundle.read_state(str(tmp_path))] == [
        "model.ckpt-2",
        "model.ckpt-3",
    ]
    assert len(os.listdir(tmp_path)) == 5


def test_checkpoints_of_others_stay(tmp_path):
    bundle.save(tmp_path / "model.ckpt-0", tensors(0))  # Not in the file `checkpoint`.
    bundle.save(tmp_path / "bert_model.ckpt", tensors(0))
    (tmp_path / "model.ckpt-1.notes.txt").write_text("mine", encoding="utf-8")
    write(tmp_path, 1, 2, 3, keep_max=1)
    assert steps_in(tmp_path) == [0, 1, 3]
    assert (tmp_path / "model.ckpt-1.notes.txt").exists()
    assert bundle.read(tmp_path / "bert_model.ckpt", ["a"])


def test_a_copied_folder_does_not_follow_names_to_the_original(tmp_path):
    write(tmp_path / "original", 1)
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    for name in (
        "/moved/from/model.ckpt-1",
        f"{tmp_path}/original/model.ckpt-1",
        "../original/model.ckpt-1",
    ):
        (tmp_path / "copy" / "checkpoint").write_text(
            f'model_checkpoint_path: "{name}"\n', encoding="utf-8"
        )
        own = str(tmp_path / "copy" / "model.ckpt-1")
        assert bundle.latest(tmp_path / "copy") == own
    (tmp_path / "copy" / "model.ckpt-1.index").unlink()
    with pytest.raises(ValueError, match=r"which is outside the folder; expected"):
        bundle.latest(tmp_path / "copy")


def test_a_run_of_2018_is_found_with_slots_and_step(tmp_path, shared):
    for path in (shared / "golden" / "model_gelu").glob("trained.ckpt*"):
        shutil.copyfile(path, tmp_path / path.name)
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "trained.ckpt"\n'
        'all_model_checkpoint_paths: "trained.ckpt"\n',
        encoding="utf-8",
    )
    prefix = bundle.latest(tmp_path)
    found = bundle.read(prefix, ["global_step", "bert/pooler/dense/kernel/adam_v"])
    assert found["global_step"] == 24
    assert found["bert/pooler/dense/kernel/adam_v"].max() > 0


def test_the_one_before_is_taken_where_the_latest_is_gone(tmp_path, caplog):
    write(tmp_path, 1, 2)
    (tmp_path / "model.ckpt-2.index").unlink()
    assert bundle.latest(tmp_path) == str(tmp_path / "model.ckpt-1")
    assert "model.ckpt-2 is missing; using" in caplog.text


def test_it_is_an_error_where_all_are_gone(tmp_path):
    write(tmp_path, 1)
    (tmp_path / "model.ckpt-1.index").unlink()
    with pytest.raises(FileNotFoundError, match=r"names .*model\.ckpt-1, but"):
        bundle.latest(tmp_path)


def test_a_damaged_checkpoint_names_the_one_before_it(tmp_path):
    write(tmp_path, 1, 2, 3)
    with open(tmp_path / "model.ckpt-3.data-00000-of-00001", "r+b") as file:
        file.truncate(2)
    (tmp_path / "model.ckpt-2.index").unlink()
    prefix = bundle.latest(tmp_path)
    wanted = bundle.read_names_and_shapes(prefix)
    with pytest.raises(ValueError, match=r"or use the previous one, .*ckpt-1\."):
        bundle.read(prefix, wanted)


@pytest.mark.parametrize("text", ["", "hello", "model_checkpoint_path: 5"])
def test_a_checkpoint_file_that_says_nothing_is_refused(tmp_path, text, capfd, caplog):
    (tmp_path / "checkpoint").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="does not name a checkpoint"):
        bundle.latest(tmp_path)
    assert "WARNING" not in capfd.readouterr().err
    assert not caplog.records


# Killed.

# Copies a run once for every moment, and kills a process that writes step 3 into the
# copy at that moment: before, within or after a write, a rename or a removal.
KILLED = """
import os, pathlib, shutil, signal, sys
import numpy as np
import tensorflow as tf
from bert_tf import files
from bert_tf.checkpoints.release import bundle

def write_until(folder, moment):
    passed = iter(range(1000))

    def pass_moment():
        if next(passed) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(function):
        def call(*args, **kwargs):
            pass_moment()
            function(*args, **kwargs)
            pass_moment()
        return call

    def watched_save(*, prefix, **kwargs):
        half = pathlib.Path(f"{prefix}.data-00000-of-00001.tempstate123")
        half.write_bytes(b"half")
        pass_moment()
        half.unlink()
        save(prefix=prefix, **kwargs)
        pass_moment()

    save, tf.raw_ops.SaveV2 = tf.raw_ops.SaveV2, watched_save
    files.rename = watched(files.rename)
    files.remove = watched(files.remove)
    bundle.write_parts(folder, 3, {"a": np.full(3, 3, "float32")})
    bundle.commit(folder, 3, keep_max=2)

run, copies = sys.argv[1:]
for moment in range(100):
    folder = f"{copies}/{moment}"
    shutil.copytree(run, folder)
    child = os.fork()
    if child == 0:
        write_until(folder, moment)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        shutil.rmtree(folder)
        break
"""


def test_a_run_killed_at_any_moment_finds_its_last_complete_checkpoint(
    tmp_path, project_root
):
    run, copies = tmp_path / "run", tmp_path / "copies"
    write(run, 1, 2, keep_max=2)
    subprocess.run(
        [sys.executable, "-c", KILLED, run, copies], cwd=project_root, check=True
    )
    found = []
    for moment in range(len(os.listdir(copies))):
        folder = copies / str(moment)
        prefix = bundle.latest(folder)
        value = bundle.read(prefix, ["a"])["a"][0]
        assert prefix.endswith(f"model.ckpt-{int(value)}")
        found.append(int(value))
        # The run goes on from there, and its next writes put everything in order.
        write(folder, *range(int(value) + 1, 5), keep_max=2)
        assert len(os.listdir(folder)) == 5, (moment, os.listdir(folder))
        assert steps_in(folder) == [3, 4]
    # Two moments around SaveV2, around three renames, two removals, a last rename.
    assert len(found) == 14
    assert found == [2] * found.count(2) + [3] * found.count(3)
    assert found.count(2) == 7
