"""Files with weights: whole, in shards, damaged, of other frameworks."""

import json
import pathlib
import struct

import numpy as np
import pytest

from bert_tf.checkpoints import hugging_face
from bert_tf.checkpoints.hugging_face import shards


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path):
    def fails():
        yield "a", np.zeros(3, "float32")
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        shards.write(tmp_path, fails())
    assert list(tmp_path.iterdir()) == []


def header_changed(change):
    def damage(path):
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + size])
        change(header["embeddings.word_embeddings.weight"])
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])

    return damage


def cut_to(num_bytes):
    return lambda path: path.write_bytes(path.read_bytes()[:num_bytes])


DAMAGED = (
    r"cannot be read: it is truncated or damaged \({}bytes; .+\); copy or download"
)


@pytest.mark.parametrize(
    "damage, message",
    [
        (cut_to(-100), DAMAGED.format("2[0-9]{4} ")),  # A download that stopped.
        (cut_to(100), DAMAGED.format("100 ")),  # Within the header.
        (cut_to(0), DAMAGED.format("0 ")),
        (lambda path: path.write_bytes(b"PK\x03\x04" * 99), DAMAGED.format("396 ")),
        (
            header_changed(lambda entry: entry.update(shape=[1, 1])),
            DAMAGED.format(".*"),
        ),
        (
            header_changed(lambda entry: entry["data_offsets"].__setitem__(1, 1 << 40)),
            DAMAGED.format(".*"),
        ),
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
    with pytest.raises(
        FileNotFoundError,
        match=r"2 of 4 shards are missing: model-00002-of-00004\.safetensors",
    ):
        hugging_face.open_source(folder)


@pytest.mark.parametrize(
    "index, message",
    [
        ("no JSON", "is not an index of shards: expected JSON with a weight_map"),
        ("[]", "is not an index of shards"),
        ('{"weight_map": {"a": 3}}', "names the shard 3; expected a file beside it"),
        ('{"weight_map": {"a": "../b.safetensors"}}', "names the shard '../b.safetens"),
        (
            '{"weight_map": {"a": "model-00001-of-00004.safetensors"}}',
            "lists a in model-00001-of-00004.safetensors, which lacks it",
        ),
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
    with pytest.raises(ValueError) as error:
        hugging_face.open_source(folder)
    assert str(error.value) == (
        f"{folder} has {name}, but no model.safetensors; where {version} is installed, "
        'convert it with: python -c "import transformers; '
        f"transformers.BertForSequenceClassification.from_pretrained('{folder}'"
        f"{argument}).save_pretrained('{folder}')\""
    )


def test_an_adapter_and_a_folder_without_weights_are_refused(copied):
    folder = copied("encoder")
    weights = folder / "model.safetensors"
    weights.rename(folder / "adapter_model.safetensors")
    with pytest.raises(ValueError, match="an adapter, not a model; merge it"):
        hugging_face.open_source(folder)
    pathlib.Path(folder / "adapter_model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors and no"):
        hugging_face.open_source(folder)
