"""Keras's own files: read by name, written so that plain Keras loads them."""

import dataclasses
import io
import json
import subprocess
import sys
import tempfile
import zipfile

import h5py
import keras
import numpy as np
import pytest

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import keras_files
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.optimization import adam_weight_decay
from tests.modeling import small_config

# Keras hands its variables to NumPy 2 in NumPy 1's way.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"
)

SMALL = small_config.create(
    vocab_size=9,
    num_hidden_layers=2,
    hidden_act="gelu_erf",
    layer_norm_epsilon=1e-6,
)
FEATURES = {
    "input_ids": np.array([[2, 7, 8, 3], [2, 5, 3, 0]], "int32"),
    "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], "int32"),
    "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 0]], "int32"),
    "masked_lm_positions": np.array([[1, 2], [1, 0]], "int32"),
}
HEADS = {
    "encoder": checkpoint_heads.Head(kind="encoder"),
    "pretraining": checkpoint_heads.Head(kind="pretraining"),
    "masked_lm": checkpoint_heads.Head(kind="masked_lm"),
    "classification": checkpoint_heads.Head(kind="classification", num_labels=3),
    "question_answering": checkpoint_heads.Head(kind="question_answering"),
    "token_classification": checkpoint_heads.Head(
        kind="token_classification", num_labels=3
    ),
    "multiple_choice": checkpoint_heads.Head(kind="multiple_choice"),
}
TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "ä", "\u2028", "##b")
LABELS = ("no", "perhaps", "ja")


def create(kind, **kwargs):
    """Returns a model none of whose weights are alike."""
    model = checkpoint_heads.create_model(SMALL, HEADS[kind], **kwargs)
    draws = np.random.default_rng(7)
    for weight in model.weights:
        weight.assign(draws.normal(size=weight.shape).astype("float32"))
    return model


def arrays_of(model):
    variables = checkpoint_names.checkpoint_variables(model)
    return {
        name: np.asarray(weight.value.numpy()) for name, weight in variables.items()
    }


def source_of(model, kind, **changes):
    """Returns what another format's reader would have made of a model."""
    arrays = arrays_of(model)
    values = {
        "path": "elsewhere/model.safetensors",
        "format": "hugging_face",
        "shapes": {name: array.shape for name, array in arrays.items()},
        "read_each": lambda wanted: ((name, arrays[name]) for name in wanted),
        "head": HEADS[kind],
        "config": SMALL,
    }
    return source_module.Source(**{**values, **changes})


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Files of an encoder: {suffix: bytes}."""
    folder = tmp_path_factory.mktemp("written")
    source = source_of(create("encoder"), "encoder")
    for suffix in (".keras", ".weights.h5"):
        keras_files.write(source, folder / f"model{suffix}")
    return {
        path.name.removeprefix("model"): path.read_bytes() for path in folder.iterdir()
    }


def read_all(path):
    opened = keras_files.open_source(path)
    return dict(opened.read_each(opened.shapes))


def assert_same_weights(opened, model):
    expected = arrays_of(model)
    assert {name: tuple(a.shape) for name, a in expected.items()} == opened.shapes
    read = dict(opened.read_each(opened.shapes))
    for name, array in expected.items():
        assert read[name].dtype == "float32"
        np.testing.assert_array_equal(read[name], array)


@pytest.mark.parametrize("kind", checkpoint_heads.KINDS)
def test_what_keras_saved_is_opened_under_the_releases_names(tmp_path, kind):
    model = create(kind)
    model.save(tmp_path / "model.keras")
    opened = keras_files.open_source(tmp_path / "model.keras")
    assert (opened.head, opened.config) == (HEADS[kind], SMALL)
    assert (opened.format, opened.unmapped, opened.optimizer) == ("keras", (), ())
    assert_same_weights(opened, model)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_of_half_precision_become_float32_exactly(tmp_path, dtype):
    model = create("encoder", dtype=dtype)
    model.save_weights(tmp_path / "half.weights.h5")
    read = read_all(tmp_path / "half.weights.h5")
    for name, array in arrays_of(model).items():
        assert read[name].dtype == "float32"
        np.testing.assert_array_equal(read[name], array.astype("float32"))


@pytest.mark.parametrize("kind", ["pretraining", "classification"])
def test_weights_alone_show_their_head_and_find_what_lies_beside(tmp_path, kind):
    model = create(kind)
    path = tmp_path / "some.weights.h5"
    model.save_weights(path)
    assert keras_files.open_source(path).config is None
    (tmp_path / "bert_config.json").write_text(SMALL.to_json_string())
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    (tmp_path / "task.json").write_text('{"do_lower_case": false}')
    opened = keras_files.open_source(path)
    assert (opened.head, opened.config) == (HEADS[kind], SMALL)
    assert opened.vocabulary.tokens == TOKENS
    assert opened.do_lower_case is False
    assert opened.notes == ()
    assert_same_weights(opened, model)


def test_heads_of_the_same_shape_are_a_classifier_by_default(tmp_path):
    path = tmp_path / "own.weights.h5"
    create("token_classification", name="my_tagger").save_weights(path)
    opened = keras_files.open_source(path)
    assert (opened.head.kind, opened.head.is_known) == ("classification", False)
    task = {"task": "token_classification", "labels": LABELS}
    (tmp_path / "task.json").write_text(json.dumps(task))
    opened = keras_files.open_source(path)
    assert opened.head == dataclasses.replace(
        HEADS["token_classification"], labels=LABELS
    )


@pytest.mark.slow
def test_an_optimizers_state_is_no_weight(tmp_path):
    model = create("classification")
    model.compile(optimizer=adam_weight_decay.AdamWeightDecay(1e-3))
    model.fit({**FEATURES, "label_ids": np.array([0, 2])}, verbose=0)
    model.save(tmp_path / "model.keras")
    opened = keras_files.open_source(tmp_path / "model.keras")
    assert opened.unmapped == ()
    assert_same_weights(opened, model)


# Keras knows only the classes of this package that were registered. `load_model` needs
# no optimizer; Keras itself builds the one that a compiled model's file names.
IN_A_FRESH_PROCESS = """
import sys
import bert_tf
import keras
import numpy as np

bert_tf.load_model(f"{sys.argv[1]}/compiled.keras")
assert "bert_tf.optimization" not in sys.modules
import bert_tf.modeling, bert_tf.optimization

for name in sys.argv[2:]:
    features = dict(np.load(f"{sys.argv[1]}/{name}.features.npz"))
    model = keras.saving.load_model(f"{sys.argv[1]}/{name}.keras")
    outputs = [model(features)]
    for weight in model.weights:
        weight.assign(keras.ops.zeros_like(weight))
    model.load_weights(f"{sys.argv[1]}/{name}.weights.h5")
    outputs.append(model(features))
    for index, values in enumerate(outputs):
        values.pop("all_encoder_layers", None)
        np.savez(f"{sys.argv[1]}/{name}.{index}.npz", **values)
"""


# tests/modeling does the same with the files that models of every class save.
WRITTEN = ("pretraining", "classification")


def test_what_is_written_loads_in_plain_keras_without_custom_objects(
    tmp_path, project_root
):
    expected = {}
    for kind in WRITTEN:
        np.savez(tmp_path / f"{kind}.features.npz", **FEATURES)
        model = create(kind)
        expected[kind] = model(FEATURES)
        keras_files.write(source_of(model, kind), tmp_path / f"{kind}.keras")
        keras_files.write(source_of(model, kind), tmp_path / f"{kind}.weights.h5")
    # Its file also names an optimizer of this package.
    compiled = create("encoder")
    expected["compiled"] = compiled(FEATURES)
    compiled.compile(optimizer=adam_weight_decay.AdamWeightDecay(1e-3))
    compiled.save(tmp_path / "compiled.keras")
    compiled.save_weights(tmp_path / "compiled.weights.h5")
    np.savez(tmp_path / "compiled.features.npz", **FEATURES)
    subprocess.run(
        [
            sys.executable,
            "-c",
            IN_A_FRESH_PROCESS,
            tmp_path,
            "compiled",
            *WRITTEN,
        ],
        cwd=project_root,
        check=True,
    )
    for name, outputs in expected.items():
        for index in range(2):
            loaded = np.load(tmp_path / f"{name}.{index}.npz")
            assert set(loaded) == set(outputs) - {"all_encoder_layers"}
            for key in loaded:
                np.testing.assert_array_equal(loaded[key], outputs[key])


def test_a_pooler_that_the_source_lacks_is_new_and_always_the_same(tmp_path):
    model = create("masked_lm")
    whole = source_of(model, "masked_lm")
    without = {
        name: shape
        for name, shape in whole.shapes.items()
        if not name.startswith("bert/pooler/")
    }
    poolers = []
    for name in ("one.keras", "two.keras"):
        changed = dataclasses.replace(whole, shapes=without)
        assert keras_files.placement(changed).without_place == ()
        keras_files.write(changed, tmp_path / name)
        opened = keras_files.open_source(tmp_path / name)
        poolers.append(dict(opened.read_each(["bert/pooler/dense/kernel"])))
    first, second = (pooler["bert/pooler/dense/kernel"] for pooler in poolers)
    np.testing.assert_array_equal(first, second)
    assert 0.01 < first.std() < 0.03


@pytest.mark.parametrize(
    "changes, name, message",
    [
        ({"config": None}, "m.keras", "or pass --bert_config_file"),
        ({}, "m.h5", "expected a name that ends with .keras or .weights.h5"),
        ({"shapes": {}}, "m.keras", "lacks 37 .* bert/embeddings/word_embeddings"),
        (
            {"config": dataclasses.replace(SMALL, vocab_size=7)},
            "m.keras",
            r"has shape \[9, 8\] in .*, expected \[7, 8\]",
        ),
    ],
)
def test_what_cannot_be_written_leaves_nothing(tmp_path, changes, name, message):
    wrong = source_of(create("encoder"), "encoder", **changes)
    with pytest.raises(ValueError, match=message):
        keras_files.write(wrong, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def config_changed(**changes):
    """Changes the model in config.json; "config__x" is x in its configuration."""

    def change(members):
        values = json.loads(members["config.json"])
        for name, value in changes.items():
            inner = (
                values["config"]["config"] if name.startswith("config__") else values
            )
            inner[name.removeprefix("config__")] = value
        return {"config.json": json.dumps(values)}

    return change


def weights_changed(change_weights):
    def change(members):
        file = io.BytesIO(members["model.weights.h5"])
        with h5py.File(file, "a") as weights:
            change_weights(weights)
        return {"model.weights.h5": file.getvalue()}

    return change


def replaced(name, content):
    return lambda members: {name: content}


def _linked(weights):
    """Replaces a group by a link to another HDF5 file that exists."""
    with tempfile.NamedTemporaryFile(suffix=".h5", delete=False) as file:
        h5py.File(file.name, "w").close()
    del weights["embeddings"]
    weights["embeddings"] = h5py.ExternalLink(file.name, "/")


def _virtual(weights):
    del weights["embeddings/vars/0"]
    layout = h5py.VirtualLayout((9, 8), "float32")
    layout[:] = h5py.VirtualSource("other.h5", "x", (9, 8))
    weights.create_virtual_dataset("embeddings/vars/0", layout)


def _external(weights):
    del weights["embeddings/vars/0"]
    weights.create_dataset(
        "embeddings/vars/0", (9, 8), "float32", external=[("/etc/passwd", 0, 288)]
    )


def _shape_bomb(weights):
    del weights["embeddings/vars/0"]
    weights.create_dataset(
        "embeddings/vars/0", (1 << 30, 1 << 10), "float32", chunks=(64, 64)
    )


LAMBDA = {
    "module": "keras.layers",
    "class_name": "Lambda",
    "registered_name": None,
    "config": {"function": {"class_name": "__lambda__", "config": {"value": "4w=="}}},
}


@pytest.mark.parametrize(
    "change, message",
    [
        (config_changed(**LAMBDA), "the class Lambda, expected one of BertModel, .*; "),
        (
            config_changed(
                class_name="BertBiEncoder", registered_name="bert_tf>BertBiEncoder"
            ),
            "pass the folder of its run; keras.saving.load_model reads the file, too",
        ),
        (config_changed(config={}), "its BertModel has no configuration"),
        *(
            (
                config_changed(config={"config": SMALL.to_dict(), "preprocessor": one}),
                f"has an unexpected value of {name}: .*; save the model again",
            )
            for one, name in (
                ("x", "preprocessor"),
                (["x"], "preprocessor"),
                ({"vocabulary": 5}, r"preprocessor\.vocabulary"),
            )
        ),
        (config_changed(config__a=1), "Unknown key a in the model configuration"),
        (config_changed(config__num_hidden_layers=3), "expects are missing, such as b"),
        (config_changed(config__vocab_size=8), r"has shape \[9, 8\], but its conf"),
        (replaced("config.json", b"{"), "its config.json is not JSON"),
        (replaced("config.json", b"[" * 10**6), "not JSON: it is nested too deeply"),
        (replaced("config.json", b"[]"), "its config.json is not a JSON"),
        (replaced("metadata.json", None), "has no metadata.json"),
        (replaced("model.weights.h5", None), "has no model.weights.h5"),
        (replaced("model.weights.h5", b"x" * 99), "not a complete HDF5 file"),
        (weights_changed(lambda w: w.pop("embeddings")), "not contain the weights of"),
        # Neither reads another file nor reserves memory for what is not stored.
        (weights_changed(_linked), "refers to values in another file"),
        (weights_changed(_virtual), "refers to values in another file"),
        (weights_changed(_external), "refers to values in another file"),
        (weights_changed(_shape_bomb), r"has shape \[1073741824, 1024\], but its"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_and_never_run(
    tmp_path, written, change, message
):
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(io.BytesIO(written[".keras"])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, **change(members)}.items():
            if content is not None:
                archive.writestr(name, content)
    with pytest.raises(ValueError, match=message) as caught:
        read_all(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0, 0.5, 0.999])
@pytest.mark.parametrize("suffix", [".keras", ".weights.h5"])
def test_a_file_that_was_cut_short_is_refused(tmp_path, written, suffix, share):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(written[suffix][: int(share * len(written[suffix]))])
    with pytest.raises(ValueError, match="it may be truncated: copy it again"):
        read_all(path)


def test_weights_of_another_model_are_named(tmp_path):
    other = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    other.save_weights(tmp_path / "other.weights.h5")
    with pytest.raises(ValueError, match=r"contain the weights of a model of .* laye"):
        keras_files.open_source(tmp_path / "other.weights.h5")


@pytest.mark.parametrize(
    "start, offset",
    [
        (b"PK\5\6", 18),  # Where the list of members starts: an OSError of zipfile.
        (b"PK\1\2", 6),  # A version that it does not know: a NotImplementedError.
    ],
)
def test_a_damaged_list_of_members_is_refused(tmp_path, written, start, offset):
    path = tmp_path / "model.keras"
    content = bytearray(written[".keras"])
    content[content.rindex(start) + offset] = 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model.keras\b.*; .*copy it again"):
        read_all(path)
