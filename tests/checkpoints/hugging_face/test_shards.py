"""Files with weights: whole, in shards, damaged, of other frameworks."""

import json
import pathlib
import struct

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.checkpoints import hugging_face
from bert_tf.checkpoints.hugging_face import shards

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([np.nan, -0.0, np.inf], np.float32),
    "c": np.arange(4, dtype=np.float32),
}
SHAPES = {name: array.shape for name, array in ARRAYS.items()}


def read_each(wanted):
    for name in wanted:
        # Turned twice: what is written is not contiguous in memory.
        yield name, np.array(ARRAYS[name].T, order="C").T


@pytest.mark.parametrize(
    "max_bytes, expected",
    [
        (40, {"a": 1, "b": 1, "c": 2}),  # 24 + 12, 16 bytes.
        (30, {"a": 1, "b": 2, "c": 2}),
        (1, {"a": 1, "b": 2, "c": 3}),  # No tensor is divided.
    ],
)
def test_weights_above_the_limit_are_divided_in_order(tmp_path, max_bytes, expected):
    shards.write(tmp_path, SHAPES, read_each, max_bytes)
    total = max(expected.values())
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    files = {
        name: f"model-{number:05d}-of-{total:05d}.safetensors"
        for name, number in expected.items()
    }
    assert index == {"metadata": {"total_size": 52}, "weight_map": files}
    assert not (tmp_path / "model.safetensors").exists()
    for name, file in files.items():
        read = safetensors.numpy.load_file(tmp_path / file)[name]
        assert read.tobytes() == ARRAYS[name].tobytes()


def test_weights_below_the_limit_are_one_file_with_identical_bits(tmp_path):
    shards.write(tmp_path, SHAPES, read_each, 52)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    with safetensors.safe_open(tmp_path / "model.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}
        for name, array in ARRAYS.items():
            assert file.get_tensor(name).tobytes() == array.tobytes()
    # The data is aligned, as safetensors' own writer aligns it.
    data = (tmp_path / "model.safetensors").read_bytes()
    assert struct.unpack("<Q", data[:8])[0] % 8 == 0


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path):
    def fails(wanted):
        yield "a", ARRAYS["a"]
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        shards.write(tmp_path, SHAPES, fails)
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


def test_a_download_that_did_not_finish_is_named(copied):
    folder = copied("encoder")
    (folder / "model.safetensors").rename(folder / "model.safetensors.part")
    with pytest.raises(FileNotFoundError, match=r"but an unfinished download, mod"):
        hugging_face.open_source(folder)


def test_a_folder_in_the_place_of_the_weights_is_named(copied):
    folder = copied("encoder")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    with pytest.raises(OSError, match=r"encoder/model\.safetensors cannot be read"):
        hugging_face.open_source(folder)


def test_an_index_that_is_no_text_is_named(copied):
    folder = copied("sharded")
    (folder / "model.safetensors.index.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match=r"index\.json is not an index of shards"):
        hugging_face.open_source(folder)


def test_a_shard_cut_short_is_named(copied):
    folder = copied("sharded")
    cut_to(-1)(folder / "model-00003-of-00004.safetensors")
    with pytest.raises(ValueError, match=r"00003-of-00004\.safetensors cannot be"):
        hugging_face.open_source(folder)


def test_shards_without_their_index_are_refused(copied):
    folder = copied("sharded")
    (folder / "model.safetensors.index.json").unlink()
    assert hugging_face.is_at(folder)
    with pytest.raises(FileNotFoundError, match=r"but no model\.safetensors\.index"):
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


def test_a_pickle_beside_safetensors_does_no_harm(copied):
    folder = copied("encoder")
    (folder / "pytorch_model.bin").write_bytes(b"")
    assert hugging_face.open_source(folder).head.kind == "encoder"


def test_an_adapter_and_a_folder_without_weights_are_refused(copied):
    folder = copied("encoder")
    weights = folder / "model.safetensors"
    weights.rename(folder / "adapter_model.safetensors")
    with pytest.raises(ValueError, match="an adapter, not a model; merge it"):
        hugging_face.open_source(folder)
    pathlib.Path(folder / "adapter_model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors and no"):
        hugging_face.open_source(folder)
