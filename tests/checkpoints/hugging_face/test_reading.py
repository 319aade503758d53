"""A Hugging Face folder, opened: what a model computes with it, and bad folders."""

import dataclasses
import json

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import tokenizers

import bert_tf
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import hugging_face
from bert_tf.checkpoints import loading
from bert_tf.modeling import bert
from tests.checkpoints import sources


def test_what_goes_along_with_the_weights_is_read(foreign):
    source = hugging_face.open_source(foreign / "token_classification")
    assert source.format == "hugging_face"
    assert source.path == str(foreign / "token_classification")
    assert source.head.labels == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    assert source.config.hidden_act == "gelu"  # gelu_pytorch_tanh there.
    assert source.do_lower_case is False
    assert source.vocabulary.tokens[:3] == ("[PAD]", "[UNK]", "[CLS]")
    assert source.vocabulary["Cat"] == 32
    assert source.shapes["bert/encoder/layer_1/intermediate/dense/kernel"] == (16, 24)
    assert source.optimizer == source.unmapped == ()


def test_tensors_come_in_the_order_in_which_they_are_asked_for(foreign):
    source = hugging_face.open_source(foreign / "sharded")
    assert "has 64 rows for 40 tokens; the last rows are padding" in source.notes[0]
    wanted = sorted(source.shapes, reverse=True)
    read = dict(source.read_each(wanted))
    assert list(read) == wanted
    assert {name: array.shape for name, array in read.items()} == source.shapes
    assert {array.dtype.name for array in read.values()} == {"float32"}


@pytest.mark.parametrize(
    "name, changes, kind, note",
    [
        # Weights decide, where they can.
        (
            "pretraining",
            {"architectures": ["BertForMaskedLM"]},  # As google's own folders say.
            "pretraining",
            "names BertForMaskedLM, but the weights are those of BertForPreTraining",
        ),
        (
            "encoder",
            {"architectures": ["BertForSequenceClassification"]},
            "encoder",
            "but the weights are those of BertModel",
        ),
        ("classification", {"architectures": None}, "classification", "BertModel does"),
        (
            "token_classification",
            {"architectures": ["BertCrfTagger"]},  # Without a pooler: no classifier.
            "token_classification",
            "BertCrfTagger does not say what classifier.weight is for",
        ),
        (
            "classification",
            {"id2label": {"0": "yes", "1": "no"}},
            "classification",
            "id2label has 2 names for 3 classes",
        ),
    ],
)
def test_a_configuration_that_says_less_or_otherwise(copied, name, changes, kind, note):
    source = hugging_face.open_source(copied(name, **changes))
    assert source.head.kind == kind
    assert source.head.is_known is ("does" not in note)
    assert source.head.labels is None or "does" in note
    assert any(note in sentence for sentence in source.notes), source.notes


def rewritten(folder, change):
    """Rewrites a folder's weights after `change` was applied to the arrays."""
    path = folder / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    change(arrays)
    safetensors.numpy.save_file(arrays, path, {"format": "pt"})
    return folder


def test_buffers_are_no_weights_and_strangers_are_left_over(copied):
    def change(arrays):
        arrays["embeddings.position_ids"] = np.arange(20)[None]
        arrays["embeddings.token_type_ids"] = np.zeros((1, 20), np.int64)
        arrays["crf.transitions"] = np.zeros((2, 2), np.float32)
        arrays["encoder.layer.2.output.dense.bias"] = np.zeros(16, np.float32)

    source = hugging_face.open_source(rewritten(copied("encoder"), change))
    assert source.unmapped == ("crf.transitions", "encoder.layer.2.output.dense.bias")


@pytest.mark.parametrize(
    "difference, unmapped",
    [(0.0, ()), (1e-3, ("cls.predictions.decoder.weight",))],
)
def test_the_masked_word_table_is_the_word_embeddings_or_left_over(
    copied, difference, unmapped
):
    def change(arrays):
        arrays["cls.predictions.decoder.weight"][3, 1] += difference

    source = hugging_face.open_source(rewritten(copied("gamma_beta"), change))
    assert source.unmapped == unmapped
    said = any("differs from bert.embeddings" in note for note in source.notes)
    assert said is bool(unmapped)


def test_an_output_table_of_its_own_is_refused_and_the_encoder_is_not(foreign):
    folder = foreign / "untied"
    with pytest.raises(ValueError, match=r"table, cls.predictions.decoder.* --head"):
        loading.load_model(folder)
    recorded = np.load(folder / "expected.npz")
    batch = ("input_ids", "attention_mask", "token_type_ids")
    encoder = bert.BertModel(hugging_face.open_source(folder).config)
    report = loading.load_checkpoint(encoder, folder)
    assert "cls.predictions.decoder.weight" in report.left_over
    outputs = encoder({name: recorded[f"input/{name}"] for name in batch})
    np.testing.assert_allclose(
        outputs["sequence_output"], recorded["hidden_states"][-1], atol=1e-5
    )


def test_a_next_sentence_head_alone_is_no_model_of_ours(copied):
    def change(arrays):
        for name in list(arrays):
            if name.startswith("cls.predictions"):
                del arrays[name]

    folder = copied("pretraining", architectures=["BertForNextSentencePrediction"])
    source = hugging_face.open_source(rewritten(folder, change))
    assert source.head.kind == "encoder"
    assert "cls/seq_relationship/output_weights" in source.shapes
    assert source.unread_head == "BertForNextSentencePrediction"
    with pytest.raises(ValueError, match=r"SentencePrediction\); pass head=encoder"):
        loading.load_model(folder)


def without(name):
    def change(arrays):
        del arrays[name]

    return change


def cut(name, *, to):
    def change(arrays):
        arrays[name] = np.ascontiguousarray(arrays[name][:to])

    return change


def quantized(arrays):
    name = "bert.encoder.layer.0.attention.self.query.weight"
    arrays[name] = arrays[name].astype(np.int8)


def doubled(arrays):
    arrays["bert.embeddings.LayerNorm.gamma"] = np.ones(16, np.float32)


@pytest.mark.parametrize(
    "name, change, message",
    [
        (
            "classification",
            without("bert.encoder.layer.1.output.dense.weight"),
            "1 of the 41 weights that its configuration expects are missing, such as",
        ),
        # It needs one; an encoder does not.
        ("classification", without("bert.pooler.dense.bias"), "bert.pooler.dense.bias"),
        (
            "masked_lm",
            without("cls.predictions.transform.dense.bias"),
            "are missing, such as cls.predictions.transform.dense.bias",
        ),
        (
            "masked_lm",
            cut("bert.embeddings.word_embeddings.weight", to=39),
            r"has shape \[39, 16\], but its configuration expects \[40, 16\]",
        ),
        (
            "masked_lm",  # The message has the file's own layout.
            cut("bert.encoder.layer.0.intermediate.dense.weight", to=20),
            r"has shape \[20, 16\], but its configuration expects \[24, 16\]",
        ),
        ("question_answering", cut("qa_outputs.weight", to=1), r"shape \[1, 16\], but"),
        ("classification", quantized, "query.weight is stored as I8, expected float"),
        ("classification", doubled, "LayerNorm.gamma, which are the same weight"),
    ],
)
def test_weights_that_are_not_the_configurations(copied, name, change, message):
    folder = rewritten(copied(name), change)
    with pytest.raises(ValueError, match=message) as error:
        hugging_face.open_source(folder)
    assert "\n" not in str(error.value)


def test_more_layers_than_tensors_are_refused_before_they_take_memory(copied):
    folder = copied("encoder", num_hidden_layers=10**9)
    with pytest.raises(ValueError, match=r"expects 1000000000 layers, but there are"):
        hugging_face.open_source(folder)


def test_a_regression_with_several_outputs_is_read_and_written(copied, tmp_path):
    folder = copied("classification", problem_type="regression")
    source = hugging_face.open_source(folder)
    hugging_face.write(source, str(tmp_path / "written"))
    recorded = np.load(folder / "expected.npz")
    names = ("input_ids", "attention_mask", "token_type_ids")
    batch = {name: recorded[f"input/{name}"] for name in names}
    for path in (folder, tmp_path / "written"):
        model, _ = bert_tf.from_pretrained(path)
        assert (type(model), model.num_labels) == (bert_tf.BertRegressor, 3)
        np.testing.assert_allclose(
            model(batch)["values"], recorded["logits"], atol=1e-5
        )
        [answer] = bert_tf.load(path).predict(["the cat"])
        assert len(answer["value"]) == 3


def test_an_encoder_without_a_pooler_warns_where_it_is_opened(foreign, caplog):
    model, _ = bert_tf.from_pretrained(foreign / "masked_lm", head="encoder")
    assert "masked_lm has no pooler, so its pooler is untrained" in caplog.text
    caplog.clear()
    loading.load_checkpoint(model, foreign / "encoder")
    assert "pooler" not in caplog.text


def test_an_unknown_key_is_logged(copied, change, caplog):
    folder = copied("encoder", rope_theta=10, my_note=None, id2label={})
    change(folder / "tokenizer_config.json", stemmer="snowball")
    loading.load_model(folder)
    assert "config.json has rope_theta, which bert_tf does not know" in caplog.text
    assert "tokenizer_config.json has stemmer, which bert_tf does" in caplog.text
    assert "my_note" not in caplog.text


def test_a_vocabulary_longer_than_the_table_is_refused(copied, change):
    folder = copied("sharded")
    whole = json.loads((folder / "tokenizer.json").read_text())
    whole["model"]["vocab"] |= {f"more{i}": 40 + i for i in range(25)}
    change(folder / "tokenizer.json", model=whole["model"])
    with pytest.raises(ValueError, match=r"has 65 pieces, but .* vocab_size is 64"):
        hugging_face.open_source(folder)


# Written folders.


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
