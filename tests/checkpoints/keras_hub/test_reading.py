"""KerasHub presets, read and written; foreign/make_keras_hub.py made the samples."""

import dataclasses
import json
import pathlib
import shutil
import sys

import numpy as np
import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import keras_hub
from bert_tf.checkpoints import loading
from bert_tf.modeling import config as config_module

FOREIGN = pathlib.Path(__file__).parents[1] / "foreign" / "keras_hub"
FEATURES = ("input_ids", "input_mask", "segment_ids")


@pytest.fixture
def copied(tmp_path):
    """Copies a preset, and gives its folder: copied("encoder")."""

    def copy(name):
        return pathlib.Path(shutil.copytree(FOREIGN / name, tmp_path / name))

    return copy


def _expected(name):
    expected = np.load(FOREIGN / name / "expected.npz")
    return expected, {feature: expected[feature] for feature in FEATURES}


def _their_inputs(features):
    names = ("token_ids", "padding_mask", "segment_ids")
    return {n: features[f] for n, f in zip(names, FEATURES, strict=True)}


def test_what_is_beside_the_weights_is_found():
    source = keras_hub.open_source(FOREIGN / "masked_lm")
    assert source.config == config_module.BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=24,
    )
    assert source.vocabulary.tokens[-3:] == ("the", "cat", "sat")
    assert source.do_lower_case is True
    assert keras_hub.open_source(FOREIGN / "encoder").do_lower_case is False


def test_a_preset_written_again_is_the_same_to_keras_hub(tmp_path):
    models = pytest.importorskip("keras_hub").models
    source = keras_hub.open_source(FOREIGN / "classification")
    keras_hub.write(source, str(tmp_path))
    expected, features = _expected("classification")
    task = models.BertTextClassifier.from_preset(str(tmp_path), preprocessor=None)
    inputs = _their_inputs(features)
    outputs = {**task.backbone(inputs), "logits": task(inputs)}
    assert len(outputs) == 3
    for output, values in outputs.items():
        np.testing.assert_allclose(values, expected[output], atol=1e-6)


def test_the_tokenizer_of_a_written_preset_is_ours(tmp_path):
    models = pytest.importorskip("keras_hub").models
    source = keras_hub.open_source(FOREIGN / "masked_lm")
    keras_hub.write(source, str(tmp_path))
    tokenizer = models.BertTokenizer.from_preset(str(tmp_path))
    ids = np.asarray(tokenizer("The CÁT sat"))
    # The preset keeps accents, although it lowercases.
    assert [source.vocabulary.tokens[i] for i in ids] == ["the", "[UNK]", "sat"]


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"hidden_act": "gelu_erf"}, "encoder computes gelu, not gelu_erf"),
        ({"layer_norm_epsilon": 1e-5}, "1e-12 to the variance, not 1e-05"),
        ({"attention_probs_dropout_prob": 0.2}, "one dropout rate, 0.1, which it also"),
    ],
)
def test_what_keras_hub_computes_differently_is_reported(changes, expected):
    source = keras_hub.open_source(FOREIGN / "encoder")
    assert keras_hub.placement(source).changes == ()
    config = dataclasses.replace(source.config, **changes)
    source = dataclasses.replace(source, config=config)
    [change] = keras_hub.placement(source).changes
    assert expected in change


def test_a_pooler_that_is_not_there_is_written_as_zeros(tmp_path):
    source = keras_hub.open_source(FOREIGN / "masked_lm")
    shapes = {n: s for n, s in source.shapes.items() if "pooler" not in n}
    source = dataclasses.replace(source, shapes=shapes)
    keras_hub.write(source, str(tmp_path))
    again = keras_hub.open_source(tmp_path)
    ((_, kernel),) = again.read_each(["bert/pooler/dense/kernel"])
    assert not kernel.any()


def test_without_keras_hub_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(ImportError, match=r"pip install 'bert_tf\[keras-hub\]'"):
        keras_hub.open_source(FOREIGN / "encoder")


def _change_json(name, change):
    def damage(folder):
        values = json.loads((folder / name).read_text())
        change(values)
        (folder / name).write_text(json.dumps(values))

    return damage


def _change_config(**changes):
    return _change_json("config.json", lambda values: values["config"].update(changes))


def _change_task(**changes):
    return _change_json("task.json", lambda values: values["config"].update(changes))


def _cut(name, size):
    def damage(folder):
        path = folder / name
        path.write_bytes(path.read_bytes()[:size])

    return damage


# A class that runs code when Keras makes it.
_LAMBDA = {"module": "keras.layers", "class_name": "Lambda", "config": {}}


@pytest.mark.parametrize(
    "name, damage, message",
    [
        ("roberta", None, "is a KerasHub preset of RobertaBackbone, a dif"),
        ("encoder", _cut("config.json", 100), "config.json is not JSON"),
        ("classification", _cut("task.weights.h5", 9000), "is truncated"),
        ("encoder", lambda f: (f / "model.weights.h5").unlink(), "model.weights.h5"),
        (
            "encoder",
            _change_json("config.json", lambda v: v["config"].pop("num_heads")),
            "has no num_heads in its config",
        ),
        ("encoder", _change_config(hidden_dim=20), "do not match its config.json"),
        ("encoder", _change_config(num_heads=3), "hidden_size 16 is not a multiple"),
        ("encoder", _change_config(num_layers=_LAMBDA), "an integer"),
        (
            "encoder",
            _change_config(dtype={"class_name": "DTypePolicyMap"}),
            "it is quantized",
        ),
        ("classification", _change_task(num_classes="3"), "num_classes is '3', expec"),
        ("classification", _change_task(num_classes=4), "do not match its config.json"),
    ],
)
def test_what_cannot_be_read_is_reported_in_one_line(copied, name, damage, message):
    folder = copied(name)
    if damage is not None:
        damage(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        source = formats.open_source(folder)
        list(source.read_each(source.shapes))
    assert "\n" not in str(caught.value)


def test_a_head_that_is_not_known_here_is_refused(copied):
    folder = copied("masked_lm")
    source = keras_hub.open_source(folder)
    assert source.head.kind == "encoder"
    with pytest.raises(ValueError, match=r"\(BertMaskedLM\); pass --head=encoder"):
        source.with_head(None)
    (folder / "task.weights.h5").unlink()
    source = keras_hub.open_source(folder)
    assert source.with_head(None)[0].head.kind == "encoder"
    assert source.notes == (
        "task.json has no weights of a head, so only the encoder is read",
    )
    assert source.warnings == ()


@pytest.mark.parametrize("pooling, normalize", [("cls", False), ("max", True)])
def test_the_vectors_of_an_embedder_are_read(copied, pooling, normalize):
    folder = copied("encoder")
    values = {"pooling_mode": pooling, "normalize": normalize}
    task = {"class_name": "BertTextEmbedder", "config": values}
    (folder / "task.json").write_text(json.dumps(task))
    source = keras_hub.open_source(folder).with_head(None)[0]
    assert (source.text.pooling, source.text.normalize) == (pooling, normalize)
    assert (source.warnings, source.notes) == ((), ())
    _change_json("task.json", lambda v: v["config"].update(pooling_mode="last"))(folder)
    with pytest.raises(ValueError, match="kind of pooling 'last'; expected one"):
        keras_hub.open_source(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "num_classes, activation, label_kind",
    [
        (3, "softmax", "single_label"),
        (3, "sigmoid", "multi_label"),
        (1, "linear", "regression"),  # A softmax over one output is always 1.
        (1, "sigmoid", "multi_label"),
        (3, "tanh", None),
        (1, "softmax", None),
    ],
)
def test_a_label_is_what_the_activation_says(
    tmp_path, num_classes, activation, label_kind
):
    models = pytest.importorskip("keras_hub").models
    backbone = models.BertBackbone.from_preset(str(FOREIGN / "encoder"))
    task = models.BertTextClassifier(
        backbone, num_classes=num_classes, activation=activation
    )
    task.save_to_preset(str(tmp_path))
    source = keras_hub.open_source(tmp_path)
    if label_kind is None:
        with pytest.raises(ValueError, match=f"and the activation '{activation}'"):
            loading.load_model(tmp_path)
        return
    assert source.head.label_kind == label_kind
    _, features = _expected("encoder")
    outputs = loading.load_model(tmp_path)(features)
    expected = task(_their_inputs(features))
    name = "logits" if activation == "linear" else "probabilities"
    np.testing.assert_allclose(outputs[name], expected, atol=1e-5)


def test_settings_that_change_ids_are_reported_and_the_length_is_read(copied):
    folder = copied("classification")
    assert keras_hub.open_source(folder).warnings == ()
    changes = {"sequence_length": 9, "truncate": "waterfall", "stem": True}
    _change_json("preprocessor.json", lambda v: v["config"].update(changes))(folder)
    _change_json("tokenizer.json", lambda v: v["config"].update(split=False))(folder)
    source = keras_hub.open_source(folder)
    assert source.text.max_seq_length == 9
    told = " ".join(source.warnings)
    assert "tokenizer.json has split false; bert_tf supports only true" in told
    assert 'preprocessor.json has truncate "waterfall"; bert_tf supports only' in told
    assert "preprocessor.json has stem, which bert_tf does not know" in told
