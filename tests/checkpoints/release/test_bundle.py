"""The release's checkpoint format: written, read, and refused with reason."""

import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

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
