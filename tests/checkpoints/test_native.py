"""The release's checkpoint format: written, read, and refused with reason."""

import logging
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import names
from bert_tf.checkpoints import native
from bert_tf.modeling import bert
from bert_tf.modeling import config
from bert_tf.pretraining import model as pretraining

TENSORS = {
    "bert/pooler/dense/kernel": np.arange(6, dtype="float32").reshape(2, 3),
    "global_step": np.int64(7),
    "a": np.float32(0.5),
}


@pytest.fixture
def released(golden):
    """Folder of a checkpoint that the 2018 code wrote."""
    return golden / "model"


@pytest.fixture
def model(released):
    return bert.BertModel(
        config.BertConfig.from_json_file(released / "bert_config.json")
    )


@pytest.fixture
def copied(released, tmp_path):
    """Prefix of a copy that may be spoilt."""
    for path in released.glob("bert_model.ckpt*"):
        target = tmp_path / path.name
        shutil.copyfile(path, target)
    return tmp_path / "bert_model.ckpt"


def test_tensorflow_reads_by_name_what_was_written(tmp_path):
    prefix = tmp_path / "folder" / "model.ckpt"
    native.save(prefix, {**TENSORS, "variable": tf.Variable([1.0, 2.0])})
    reader = tf.train.load_checkpoint(os.fspath(prefix))
    assert reader.get_variable_to_shape_map() == {
        "bert/pooler/dense/kernel": [2, 3],
        "global_step": [],
        "a": [],
        "variable": [2],
    }
    assert reader.get_variable_to_dtype_map()["global_step"] == tf.int64
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(reader.get_tensor(name), tensor)
    assert sorted(os.listdir(tmp_path / "folder")) == [
        "model.ckpt.data-00000-of-00001",
        "model.ckpt.index",
    ]


def test_what_was_written_is_read_back(tmp_path):
    prefix = tmp_path / "model.ckpt"
    native.save(prefix, TENSORS)
    assert native.read_names_and_shapes(prefix)["a"] == []
    for name, tensor in native.read(prefix, TENSORS).items():
        np.testing.assert_array_equal(tensor, TENSORS[name])
    with pytest.raises(ValueError, match="has no tensor b"):
        native.read(prefix, ["b"])


def test_a_released_checkpoint_is_read_and_reported(released, model):
    report = native.load_checkpoint(model, released / "bert_model.ckpt")
    assert len(report.read) == len(model.weights)
    assert report.missing == ()
    assert report.optimizer == ("global_step",)
    assert "cls/predictions/output_bias" in report.left_over
    assert f"{len(model.weights)} weights read" in str(report)
    assert "in it, but not in the model: cls/" in str(report)


def test_slots_are_not_called_left_over(released, model):
    report = native.load_checkpoint(model, released / "trained.ckpt")
    assert "bert/pooler/dense/kernel/adam_m" in report.optimizer
    assert not [name for name in report.left_over if "adam" in name]


def test_weights_that_a_checkpoint_lacks_keep_their_values(tmp_path, released, model):
    prefix = released / "bert_model.ckpt"
    everything = native.read(prefix, native.read_names_and_shapes(prefix))
    kernel = "bert/pooler/dense/kernel"
    del everything[kernel]
    native.save(tmp_path / "part.ckpt", everything)
    model.build()
    before = np.asarray(model.pooler.dense.kernel)
    report = native.load_checkpoint(model, tmp_path / "part.ckpt")
    assert report.missing == (kernel,)
    assert f"newly initialized: {kernel}" in str(report)
    np.testing.assert_array_equal(model.pooler.dense.kernel, before)


def test_the_report_is_logged(released, model, caplog):
    with caplog.at_level(logging.INFO, logger="bert_tf"):
        native.load_checkpoint(model, released / "bert_model.ckpt")
    assert "weights read" in caplog.text


def test_a_model_survives_saving_and_loading_bit_by_bit(tmp_path, released):
    read = config.BertConfig.from_json_file(released / "bert_config.json")
    first, second = pretraining.BertPretrainer(read), pretraining.BertPretrainer(read)
    native.save(tmp_path / "model.ckpt", names.checkpoint_variables(first))
    report = native.load_checkpoint(second, tmp_path / "model.ckpt")
    assert (report.missing, report.left_over) == ((), ())
    for a, b in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_under_a_strategy_are_saved_and_loaded(tmp_path, released):
    read = config.BertConfig.from_json_file(released / "bert_config.json")
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        mirrored = bert.BertModel(read)
        mirrored.build()
    report = native.load_checkpoint(mirrored, released / "bert_model.ckpt")
    assert not report.missing
    native.save(tmp_path / "model.ckpt", names.checkpoint_variables(mirrored))
    name = "bert/embeddings/word_embeddings"
    np.testing.assert_array_equal(
        native.read(tmp_path / "model.ckpt", [name])[name],
        native.read(released / "bert_model.ckpt", [name])[name],
    )


def test_a_folder_stands_for_its_latest_checkpoint(copied, model):
    text = 'model_checkpoint_path: "bert_model.ckpt"\n'
    (copied.parent / "checkpoint").write_text(text, encoding="utf-8")
    report = native.load_checkpoint(model, copied.parent)
    assert report.prefix == os.fspath(copied)


# Refused.


@pytest.mark.parametrize("part", [".index", ".data-00000-of-00001"])
def test_a_part_of_a_checkpoint_is_refused_and_the_prefix_named(released, model, part):
    prefix = released / "bert_model.ckpt"
    with pytest.raises(ValueError, match=r"one file of a checkpoint.*") as error:
        native.load_checkpoint(model, f"{prefix}{part}")
    assert str(error.value).endswith(f"in common: {prefix}")


def test_a_missing_checkpoint_is_named(released, model):
    with pytest.raises(FileNotFoundError, match=r"there is no .*absent\.ckpt\.index"):
        native.load_checkpoint(model, released / "absent.ckpt")


def test_a_missing_data_file_is_named(copied, model):
    pathlib.Path(f"{copied}.data-00000-of-00001").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no .*data-00000-of-00001"):
        native.load_checkpoint(model, copied)


def test_a_folder_without_a_checkpoint_file_is_refused(tmp_path, model):
    with pytest.raises(ValueError, match="is a folder without a file named checkpoint"):
        native.load_checkpoint(model, tmp_path)


@pytest.mark.parametrize("size", [0, 1000])
def test_a_data_file_that_is_cut_off_is_refused(copied, model, size):
    with open(f"{copied}.data-00000-of-00001", "r+b") as file:
        file.truncate(size)
    with pytest.raises(ValueError, match="cannot be read: it is damaged or cut off"):
        native.load_checkpoint(model, copied)


def test_a_changed_byte_is_found(copied, model):
    with open(f"{copied}.data-00000-of-00001", "r+b") as file:
        file.seek(5000)
        byte = file.read(1)[0]
        file.seek(5000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(ValueError, match=r"damaged or cut off \(.*\); copy it again"):
        native.load_checkpoint(model, copied)


@pytest.mark.parametrize("content", [b"", b"hello"])
def test_an_index_that_is_none_is_refused(copied, model, content):
    pathlib.Path(f"{copied}.index").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read"):
        native.load_checkpoint(model, copied)


def test_another_shape_is_refused_before_anything_is_assigned(released, golden):
    read = config.BertConfig.from_json_file(released / "bert_config.json")
    other = bert.BertModel(config.BertConfig(**{**read.to_dict(), "vocab_size": 99}))
    other.build()
    before = np.asarray(other.pooler.dense.kernel)
    with pytest.raises(
        ValueError,
        match=r"word_embeddings has shape \[288, 16\] in .* expected \[99, 16\]",
    ):
        native.load_checkpoint(other, released / "bert_model.ckpt")
    np.testing.assert_array_equal(other.pooler.dense.kernel, before)


def test_a_checkpoint_without_an_encoder_is_refused(tmp_path, model):
    native.save(tmp_path / "model.ckpt", {"dense/kernel": np.zeros(3)})
    with pytest.raises(
        ValueError, match=r"Nothing of the encoder .* got dense/kernel; give a BERT"
    ):
        native.load_checkpoint(model, tmp_path / "model.ckpt")


# Failures while writing.


def test_a_failing_write_leaves_nothing_behind(tmp_path, monkeypatch):
    native.save(tmp_path / "model.ckpt", TENSORS)

    def fail(*, prefix, **_):
        pathlib.Path(f"{prefix}.data-00000-of-00001.tempstate1").write_bytes(b"half")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.raw_ops, "SaveV2", fail)
    with pytest.raises(OSError, match=r"disk or the memory is full \(No space left"):
        native.save(tmp_path / "model.ckpt", {"a": np.zeros(3, "float32")})
    assert len(os.listdir(tmp_path)) == 2
    np.testing.assert_array_equal(
        native.read(tmp_path / "model.ckpt", ["a"])["a"], TENSORS["a"]
    )


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        native.save(tmp_path / "file" / "model.ckpt", TENSORS)


@pytest.fixture
def full_disk(tmp_path):
    """Folder on a disk of one megabyte."""
    mount = shutil.which("mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
    if mount is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root only")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named_and_the_last_checkpoint_stays(full_disk):
    native.save(full_disk / "model.ckpt-1", TENSORS)
    big = {"big": np.zeros(1 << 20, "float32")}
    with pytest.raises(OSError, match=r"model\.ckpt-2 cannot be written") as error:
        native.save(full_disk / "model.ckpt-2", big)
    assert "full" in str(error.value)
    assert sorted(os.listdir(full_disk)) == [
        "model.ckpt-1.data-00000-of-00001",
        "model.ckpt-1.index",
    ]
    assert native.read(full_disk / "model.ckpt-1", ["a"])["a"] == 0.5
