"""A checkpoint of any format, written as a Hugging Face folder."""

import dataclasses
import json

import pytest
import safetensors
import tokenizers

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import hugging_face
from tests.checkpoints import sources

SOURCE = sources.create()
FILES = [
    "config.json",
    "model.safetensors",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
]


def test_the_config_says_what_servers_and_transformers_ask_for(tmp_path):
    source = sources.create("classification")
    hugging_face.write(source, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    places = hugging_face.placement(source).places
    with safetensors.safe_open(tmp_path / "model.safetensors", "numpy") as file:
        assert set(file.keys()) == set(places.values())
    values = json.loads((tmp_path / "config.json").read_text())
    assert values["architectures"] == ["BertForSequenceClassification"]
    assert values["model_type"] == "bert"
    assert values["hidden_act"] == "gelu_new"  # The release's tanh form.
    assert values["layer_norm_eps"] == 1e-12
    assert values["pad_token_id"] == 0
    assert values["id2label"] == {"0": "no", "1": "perhaps", "2": "ja"}


def test_an_encoder_is_a_sentence_encoder_too(tmp_path):
    hugging_face.write(sources.create(), tmp_path)

    def read(name):
        return json.loads((tmp_path / name).read_text())

    assert [module["path"] for module in read("modules.json")] == ["", "1_Pooling"]
    assert read("sentence_bert_config.json")["max_seq_length"] == 16
    pooling = read("1_Pooling/config.json")
    assert pooling["word_embedding_dimension"] == 8
    assert [key for key, value in pooling.items() if value is True] == [
        "pooling_mode_mean_tokens"
    ]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"config": None}, "put its bert_config.json beside it"),
        (
            {"text": dataclasses.replace(SOURCE.text, do_lower_case=None)},
            "--do_lower_case",
        ),
        (
            {"config": dataclasses.replace(SOURCE.config, vocab_size=9)},
            "vocab_size is 9",
        ),
        ({"head": checkpoint_heads.Head(kind="question_answering")}, "lacks 2 of the"),
    ],
)
def test_what_would_make_a_broken_folder_is_refused_before_writing(
    tmp_path, changes, message
):
    source = sources.create(**changes)
    folder = tmp_path / "written"
    folder.mkdir()
    with pytest.raises(ValueError, match=message):
        hugging_face.placement(source)
    with pytest.raises(ValueError, match=message):
        hugging_face.write(source, folder)
    assert list(folder.iterdir()) == []


def test_an_encoder_without_a_pooler_is_written_without_one(tmp_path):
    source = sources.create()
    shapes = {k: v for k, v in source.shapes.items() if "/pooler/" not in k}
    hugging_face.write(dataclasses.replace(source, shapes=shapes), tmp_path)
    with safetensors.safe_open(tmp_path / "model.safetensors", "numpy") as file:
        assert not [name for name in file.keys() if "pooler" in name]  # noqa: SIM118


def test_a_tokenizer_of_its_own_survives_the_way_to_native_and_back(foreign, tmp_path):
    source = formats.open_source(foreign / "own_tokenizer")
    for target_format in ("bert", "hugging_face"):
        folder = tmp_path / target_format
        folder.mkdir()
        formats.module_of(target_format).write(source, str(folder))
        source = formats.open_source(folder)
        assert source.text.strip_accents is False
        assert source.text.never_split == ("<e1>", "</e1>")
    written = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text, ids in json.loads(
        (foreign / "own_tokenizer/ids.json").read_text()
    ).items():
        assert written.encode(text).ids == ids


def test_every_kind_of_model_is_the_same_in_transformers(check_there):
    check, lines = check_there("check_hugging_face.py")
    assert len(lines) == len(check.MODELS) + 1  # The last has added words.
    assert all(line.endswith("  ok") for line in lines)
