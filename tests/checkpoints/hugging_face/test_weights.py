"""Files with weights: whole, in shards, HDF5, damaged, of other frameworks."""

import json
import pathlib
import shutil
import struct

import h5py
import numpy as np
import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import hugging_face
from bert_tf.checkpoints import loading
from bert_tf.checkpoints.hugging_face import weights

DAMAGED = (
    r"cannot be read: it is truncated or damaged \({}bytes; .+\); copy or download"
)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda path: path.write_bytes(b"PK\x03\x04" * 99), DAMAGED.format("396 ")),
        (
            lambda path: path.write_text(
                "version https://git-lfs.github.com/spec/v1\n"
            ),
            "is a Git LFS pointer, not the weights; run `git lfs pull`",
        ),
    ],
)
def test_a_damaged_file_is_named_in_one_line(copied, damage, message):
    folder = copied("encoder")
    damage(folder / "model.safetensors")
    with pytest.raises(ValueError, match=message) as error:
        hugging_face.open_source(folder)
    assert str(error.value).startswith(f"{folder}/model.safetensors ")
    assert "\n" not in str(error.value)


def test_missing_shards_are_named(copied):
    folder = copied("sharded")
    (folder / "model-00002-of-00004.safetensors").unlink()
    (folder / "model-00004-of-00004.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="2 of 4 shards are missing"):
        hugging_face.open_source(folder)


@pytest.mark.parametrize(
    "index, message",
    [
        ("no JSON", "is not JSON"),
        ("{}", "is not an index of shards: expected JSON with a weight_map"),
        ('{"weight_map": {"a": 3}}', "names the shard 3; expected a file beside it"),
        ('{"weight_map": {"a": "../b.safetensors"}}', "names the shard '../b.safetens"),
        ('{"weight_map": {"a": "model-00001-of-00004.safetensors"}}', "which lacks it"),
    ],
)
def test_an_index_that_lies_is_refused(copied, index, message):
    folder = copied("sharded")
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ValueError, match=message):
        hugging_face.open_source(folder)


@pytest.mark.parametrize(
    "name, version, argument",
    [
        ("pytorch_model.bin", "transformers", ""),
        ("pytorch_model.bin.index.json", "transformers", ""),
        ("tf_model.h5.index.json", "transformers<5", ", from_tf=True"),
        ("flax_model.msgpack", "transformers<5", ", from_flax=True"),
    ],
)
def test_weights_of_other_frameworks_are_refused_with_a_way_out(
    copied, name, version, argument
):
    folder = copied("classification")
    (folder / "model.safetensors").rename(folder / name)
    assert hugging_face.is_at(folder)
    with pytest.raises(ValueError, match=rf"{name}, .* {version} ") as error:
        hugging_face.open_source(folder)
    call = f"BertForSequenceClassification.from_pretrained('{folder}'{argument})"
    assert call in str(error.value)


def test_an_adapter_and_a_folder_without_weights_are_refused(copied):
    folder = copied("encoder")
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    with pytest.raises(ValueError, match="an adapter, not a model; merge it"):
        hugging_face.open_source(folder)
    pathlib.Path(folder / "adapter_model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors and no"):
        hugging_face.open_source(folder)


# tf_model.h5, which the TensorFlow classes of transformers 4 wrote.

H5_FOLDERS = pathlib.Path(__file__).resolve().parents[1] / "foreign" / "hugging_face_h5"


def test_scopes_without_the_model_s_name_and_half_precision_are_read(tmp_path):
    folder = shutil.copytree(H5_FOLDERS / "question_answering", tmp_path / "folder")
    expected = loading.load_model(folder)
    with h5py.File(folder / "tf_model.h5", "r+") as file:
        for layer in ("bert", "qa_outputs"):  # As if saved before the first call.
            file.move(
                f"{layer}/tf_bert_for_question_answering/{layer}", f"{layer}/{layer}"
            )
        name = "qa_outputs/qa_outputs/bias:0"
        bias = file[name][()].astype("float16")
        del file[name]
        file[name] = bias
    source = formats.open_source(folder)
    assert any("stored as F16" in note for note in source.notes)
    loaded = loading.load_model(folder)
    for weight, other in zip(loaded.weights, expected.weights, strict=True):
        if "pooler" not in weight.path:  # The class has none.
            np.testing.assert_allclose(weight, other, rtol=1e-3)


def truncated(path):
    path.write_bytes(path.read_bytes()[:3000])


def without_a_weight(path):
    with h5py.File(path, "r+") as file:
        del file["bert/tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0"]


def without_any(path):
    h5py.File(path, "w").close()


@pytest.mark.parametrize(
    "damage, message",
    [
        (truncated, r"tf_model.h5 cannot be read: it is truncated or damaged \(3000 b"),
        (without_a_weight, "are missing, such as bert.encoder.layer.0.output.dense.we"),
        (without_any, "tf_model.h5 contains no weights; copy or download it again"),
    ],
)
def test_a_damaged_h5_file_is_refused_in_one_line(tmp_path, damage, message):
    folder = shutil.copytree(H5_FOLDERS / "encoder", tmp_path / "folder")
    damage(folder / "tf_model.h5")
    with pytest.raises(ValueError, match=message) as error:
        formats.open_source(folder)
    assert "\n" not in str(error.value)


def test_safetensors_with_names_of_tensorflow_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"saved by a TensorFlow class .* as tf_model"):
        formats.open_source(H5_FOLDERS / "safe_serialization")


def test_more_tensors_than_any_bert_has_are_refused(copied):
    folder = copied("encoder")
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    text = json.dumps({f"x{i}": empty for i in range(100_001)}).encode()
    content = struct.pack("<Q", len(text)) + text
    (folder / weights.NAME).write_bytes(content)
    with pytest.raises(ValueError, match="has 100,001 tensors; expected the weights"):
        hugging_face.open_source(folder)
