import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from tests import ring

# Loads a saved model in a process that has only named the layer's class.
LOADING_SCRIPT = """
import sys
import keras
import tensorflow as tf
import bert_tf
bert_tf.TextPreprocessor
model = keras.models.load_model(sys.argv[1])
print(model(tf.constant(["the cat", "a"])).numpy().tolist())
"""


@pytest.fixture(scope="module")
def encoder_folder(hugging_face):
    return hugging_face / "encoder"


@pytest.fixture(scope="module")
def preprocessor(encoder_folder):
    return bert_tf.TextPreprocessor(encoder_folder)


def assert_equal(features, expected):
    assert list(features) == ["input_ids", "input_mask", "segment_ids"]
    for name, column in features.items():
        assert column.dtype == tf.int32
        np.testing.assert_array_equal(column, expected[name], err_msg=name)


# In `make test`, the tests below compare texts and pairs.
@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        {"max_seq_length": 16},
        {
            "max_seq_length": 3,
            "strip_accents": False,
            "never_split": ["[MASK]", "[SEP]"],
        },
    ],
)
def test_features_are_those_of_the_full_tokenizer(golden, texts, arguments):
    layer = bert_tf.TextPreprocessor(golden / "vocab.txt", **arguments)
    length = arguments.pop("max_seq_length")
    tokenizer = bert_tf.FullTokenizer(golden / "vocab.txt", **arguments)
    first, second = texts
    assert_equal(layer(first), tokenizer(first, max_seq_length=length))
    expected = tokenizer(first, second, max_seq_length=length)
    assert_equal(layer(first, second), expected)
    dataset = tf.data.Dataset.from_tensor_slices((first, second))
    assert_equal(next(iter(dataset.batch(len(first)).map(layer))), expected)


@pytest.mark.slow
def test_texts_of_a_dataset_can_be_mapped_one_by_one(preprocessor):
    texts = ["the cat", "sat"]
    dataset = tf.data.Dataset.from_tensor_slices((texts, [0, 1]))
    dataset = dataset.map(lambda text, label: (preprocessor(text), label))
    rows = [row["input_ids"].numpy().tolist() for row, _ in dataset]
    assert rows == [[2, 5, 6, 3], [2, 7, 3]]


def test_without_a_length_rows_are_as_long_as_the_longest_text_needs(
    preprocessor, encoder_folder
):
    tokenizer = bert_tf.FullTokenizer(encoder_folder)
    for texts in (["the cat sat", "a"], ["the " * 50]):
        assert_equal(preprocessor(texts), tokenizer(texts))


PAIRS = {
    "two": (["the cat", "x"], ["sat", "a the"]),
    "tuple": ((["the cat", "x"], ["sat", "a the"]),),
    "rows": ([("the cat", "sat"), ("x", "a the")],),
    "array": (np.array([["the cat", "sat"], ["x", "a the"]]),),
    "rows as arrays": ([np.array(["the cat", "sat"]), np.array(["x", "a the"])],),
    "tensors": ([tf.constant(["the cat", "x"]), tf.constant(["sat", "a the"])],),
    "columns": (tf.constant([["the cat"], ["x"]]), np.array(["sat", "a the"], object)),
}


@pytest.mark.parametrize("form", ring.quick("tuple", "rows", "columns", of=PAIRS))
def test_pairs_may_have_any_usual_form(preprocessor, form):
    expected = preprocessor.tokenizer(["the cat", "x"], ["sat", "a the"])
    assert_equal(preprocessor(*PAIRS[form]), expected)


def test_two_texts_are_not_a_pair(preprocessor):
    expected = preprocessor.tokenizer(["the", "cat"])
    for texts in (["the", "cat"], np.array(["the", "cat"]), [np.str_("the"), "cat"]):
        assert_equal(preprocessor(texts), expected)
    tensors = [tf.constant("the"), tf.constant("cat")]
    assert_equal(preprocessor(tensors), expected)


@pytest.mark.parametrize(
    "inputs, message",
    [
        ((["a", None],), r"texts: expected strings, got None \(NoneType\)"),
        ((["a", float("nan")],), r"texts: expected strings, got nan \(float\)"),
        (([("a", "b"), "c"],), "texts: expected strings, got lists of different"),
        (({"text": ["a"]},), "texts: expected strings, got"),
        ((tf.constant([1]),), "texts: expected strings, got a tensor of int32"),
        ((["a"], tf.constant([1])), "texts_b: expected strings, got a tensor of int32"),
        (([["a", "b", "c"]],), r"texts: expected .* for pairs, \[B, 2\], got \(1, 3\)"),
        ((["a", "b"], ["c"]), r"as many texts_b as texts \(2\), got 1"),
    ],
)
def test_what_is_not_text_gets_a_clear_line(preprocessor, inputs, message):
    with pytest.raises(ValueError, match=message):
        preprocessor(*inputs)


def test_a_row_has_room_for_three_special_tokens(golden):
    with pytest.raises(ValueError, match="max_seq_length: expected at least 3, got 2"):
        bert_tf.TextPreprocessor(golden / "vocab.txt", max_seq_length=2)


@pytest.mark.slow
def test_a_configuration_has_the_vocabulary_and_all_settings(hugging_face):
    layer = bert_tf.TextPreprocessor(
        hugging_face / "own_tokenizer", never_split=["[MASK]"], name="texts"
    )
    restored = bert_tf.TextPreprocessor.from_config(layer.get_config())
    assert restored.name == "texts"
    assert restored.get_config() == layer.get_config()
    texts = ["THÉ <e1>cat</e1> [MASK]", "the " * 50]
    assert_equal(restored(texts), layer(texts))


def close(first, second):
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_a_functional_model_takes_strings_and_is_saved_with_its_vocabulary(
    encoder_folder, tmp_path
):
    encoder, tokenizer = bert_tf.from_pretrained(encoder_folder)
    layer = bert_tf.TextPreprocessor(tokenizer, max_seq_length=12)
    inputs = keras.Input((), dtype="string", name="text")
    vectors = encoder(layer(inputs))["pooled_output"]
    model = keras.Model(inputs, keras.layers.Dense(2)(vectors))
    texts = tf.constant(["the cat", "a"])
    expected = model(texts)
    close(model.predict(np.array(["the cat", "a"], object), verbose=0), expected)
    close(model.predict(tf.data.Dataset.from_tensors(texts), verbose=0), expected)
    model.save(tmp_path / "model.keras")
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    close(exported.serve(texts), expected)
    done = subprocess.run(
        [sys.executable, "-c", LOADING_SCRIPT, tmp_path / "model.keras"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    close(json.loads(done.stdout.splitlines()[-1]), expected)


def test_a_functional_model_takes_pairs(preprocessor, tmp_path):
    inputs = [keras.Input((), dtype="string", name=name) for name in ("a", "b")]
    outputs = preprocessor(*inputs)
    assert outputs["input_ids"].shape == (None, None)
    model = keras.Model(inputs, outputs)
    model.save(tmp_path / "model.keras")
    pair = ["the cat", "a"], ["sat", "the"]
    expected = preprocessor.tokenizer(*pair)
    for copy in (model, keras.models.load_model(tmp_path / "model.keras")):
        assert_equal(copy([tf.constant(texts) for texts in pair]), expected)
