"""Keras files: what Keras saved, what goes beside it, and files that are refused."""

import dataclasses
import io
import json
import tempfile
import zipfile

import h5py
import keras
import numpy as np
import pytest

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import keras_files
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.optimization import adam_weight_decay
from tests import ring
from tests.checkpoints import sources

SMALL = dataclasses.replace(
    sources.CONFIG, hidden_act="gelu_erf", layer_norm_epsilon=1e-6
)
FEATURES = {
    "input_ids": np.array([[2, 7, 8, 3], [2, 5, 3, 0]], "int32"),
    "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], "int32"),
    "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 0]], "int32"),
}


def head_of_kind(kind):
    return dataclasses.replace(sources.head_of_kind(kind), labels=None)


def create(kind, **kwargs):
    """Returns a model none of whose weights are alike."""
    return loading.model_of(sources.create(kind, sizes=SMALL), **kwargs)


def read_all(path):
    return sources.arrays_of(keras_files.open_source(path))


def assert_same_weights(path, model):
    read, variables = read_all(path), checkpoint_names.checkpoint_variables(model)
    assert read.keys() == variables.keys()
    for name, weight in variables.items():
        assert read[name].dtype == "float32"
        expected = np.asarray(weight.value.numpy()).astype("float32")
        np.testing.assert_array_equal(read[name], expected)


# In `make test`, `test_written_formats.py` reads the other kinds back.
@pytest.mark.parametrize(
    "kind", ring.quick("encoder", "classification", of=checkpoint_heads.KINDS)
)
def test_what_keras_saved_is_opened_under_the_releases_names(tmp_path, kind):
    model = create(kind)
    model.save(tmp_path / "model.keras")
    opened = keras_files.open_source(tmp_path / "model.keras")
    assert (opened.head, opened.config) == (head_of_kind(kind), SMALL)
    assert (opened.format, opened.unmapped, opened.optimizer) == ("keras", (), ())
    assert_same_weights(tmp_path / "model.keras", model)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_of_half_precision_become_float32_exactly(tmp_path, dtype):
    model = create("encoder", dtype=dtype)
    model.save_weights(tmp_path / "half.weights.h5")
    assert_same_weights(tmp_path / "half.weights.h5", model)


@pytest.mark.parametrize("kind", checkpoint_heads.KINDS)
def test_weights_alone_of_every_head_are_opened(tmp_path, kind):
    model = create(kind)
    model.save_weights(tmp_path / "one.weights.h5")
    assert_same_weights(tmp_path / "one.weights.h5", model)


def test_weights_alone_show_their_head_and_find_what_is_beside_them(tmp_path):
    path = tmp_path / "some.weights.h5"
    model = create("token_classification", name="my_tagger")
    model.save_weights(path)
    opened = keras_files.open_source(path)
    assert (opened.config, opened.vocabulary) == (None, None)
    # Several heads have such weights; the likeliest is a classifier's.
    assert (opened.head.kind, opened.head.is_known) == ("classification", False)
    (tmp_path / "bert_config.json").write_text(SMALL.to_json_string())
    (tmp_path / "vocab.txt").write_text(
        "".join(f"{token}\n" for token in sources.TOKENS)
    )
    task = {"task": "token_classification", "labels": ["O", "B", "I"]}
    (tmp_path / "task.json").write_text(json.dumps({**task, "do_lower_case": False}))
    opened = keras_files.open_source(path)
    assert (opened.head.kind, opened.head.labels) == (task["task"], ("O", "B", "I"))
    assert (opened.config, opened.notes) == (SMALL, ())
    assert opened.vocabulary.tokens == sources.TOKENS
    assert opened.do_lower_case is False
    assert_same_weights(path, model)


def test_an_optimizers_state_is_no_weight(tmp_path):
    model = create("classification")
    model.compile(optimizer=adam_weight_decay.AdamWeightDecay(1e-3))
    model.optimizer.build(model.trainable_variables)
    model.save(tmp_path / "model.keras")
    assert keras_files.open_source(tmp_path / "model.keras").unmapped == ()
    assert_same_weights(tmp_path / "model.keras", model)


# tests/modeling loads the files of models of every class in a new process.
def test_what_is_written_loads_in_plain_keras(tmp_path):
    model = create("classification")
    model.save_weights(tmp_path / "saved.weights.h5")
    (tmp_path / "bert_config.json").write_text(SMALL.to_json_string())
    source = keras_files.open_source(tmp_path / "saved.weights.h5")
    keras_files.write(source, tmp_path / "new.keras")
    loaded = keras.saving.load_model(tmp_path / "new.keras")
    np.testing.assert_array_equal(loaded(FEATURES)["logits"], model(FEATURES)["logits"])


def test_a_pooler_that_the_source_lacks_is_new_and_always_the_same(tmp_path):
    whole = sources.create("masked_lm")
    shapes = {n: s for n, s in whole.shapes.items() if "pooler" not in n}
    source = dataclasses.replace(whole, shapes=shapes)
    assert keras_files.placement(source).places.keys() == shapes.keys()
    poolers = []
    for name in ("one.keras", "two.keras"):
        keras_files.write(source, tmp_path / name)
        poolers.append(read_all(tmp_path / name)["bert/pooler/dense/kernel"])
    np.testing.assert_array_equal(*poolers)
    assert 0.01 < poolers[0].std() < 0.03


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"config": None}, "or pass --bert_config_file"),
        (
            {"config": dataclasses.replace(SMALL, vocab_size=7)},
            r"has shape \[12, 8\] in .*, expected \[7, 8\]",
        ),
    ],
)
def test_what_cannot_be_written_leaves_nothing(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        keras_files.write(sources.create(**changes), tmp_path / "m.keras")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The bytes of an encoder's `.keras` file."""
    path = tmp_path_factory.mktemp("written") / "model.keras"
    create("encoder").save(path)
    return path.read_bytes()


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
    layout = h5py.VirtualLayout((12, 8), "float32")
    layout[:] = h5py.VirtualSource("other.h5", "x", (12, 8))
    weights.create_virtual_dataset("embeddings/vars/0", layout)


def _external(weights):
    del weights["embeddings/vars/0"]
    weights.create_dataset(
        "embeddings/vars/0", (12, 8), "float32", external=[("/etc/passwd", 0, 384)]
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
        (config_changed(config__vocab_size=8), r"has shape \[12, 8\], but its conf"),
        (replaced("config.json", b"{"), "its config.json is not JSON"),
        (replaced("config.json", b"[" * 10**6), "not JSON: it is nested too deeply"),
        (replaced("config.json", b"[]"), "its config.json is not a JSON"),
        (
            replaced("metadata.json", None),
            "no item named 'metadata.json'",
        ),
        (replaced("model.weights.h5", None), "no item named 'model.weights.h5'"),
        (replaced("model.weights.h5", b"x" * 99), "truncated or damaged"),
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
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, **change(members)}.items():
            if content is not None:
                archive.writestr(name, content)
    with pytest.raises(ValueError, match=message) as caught:
        read_all(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_of_another_model_are_named(tmp_path):
    other = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    other.save_weights(tmp_path / "other.weights.h5")
    with pytest.raises(ValueError, match=r"contain the weights of a model of .* laye"):
        keras_files.open_source(tmp_path / "other.weights.h5")


def test_a_member_twice_is_refused(tmp_path, written):
    path = tmp_path / "model.keras"
    path.write_bytes(written)
    with (
        pytest.warns(UserWarning, match="Duplicate"),
        zipfile.ZipFile(path, "a") as new,
    ):
        new.writestr("config.json", "{}")
    with pytest.raises(ValueError, match=r"model\.keras has a member twice"):
        read_all(path)


@pytest.mark.parametrize(
    "start, offset",
    [
        (b"PK\5\6", 18),  # Where the list of members starts: an OSError of zipfile.
        (b"PK\1\2", 6),  # A version that it does not know: a NotImplementedError.
    ],
)
def test_a_damaged_list_of_members_is_refused(tmp_path, written, start, offset):
    path = tmp_path / "model.keras"
    content = bytearray(written)
    content[content.rindex(start) + offset] = 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model.keras cannot be read: .*; copy or"):
        read_all(path)
