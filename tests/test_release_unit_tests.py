"""The cases of the unit tests that the release came with.

Source: tokenization_test.py, modeling_test.py and optimization_test.py, 2018. The case
of a configuration that is written as JSON is in modeling/test_config.py.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.modeling import config as config_module
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.optimization import adam_weight_decay
from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import wordpiece

# Neither [PAD] nor [MASK]: a tokenizer needs neither.
PIECES = ["[UNK]", "[CLS]", "[SEP]", "want", "##want", "##ed", "wa", "un", "runn"]
PIECES += ["##ing", ","]


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in PIECES))
    return path


def test_an_accent_and_a_comma_within_a_word(vocab_file):
    text, ids = "UNwant\u00e9d,running", [7, 4, 5, 10, 8, 9]
    tokenizer = bert_tf.FullTokenizer(vocab_file)
    pieces = tokenizer.tokenize(text)
    assert pieces == ["un", "##want", "##ed", ",", "runn", "##ing"]
    assert tokenizer.convert_tokens_to_ids(pieces) == ids
    in_graph = bert_tf.InGraphTokenizer(vocab_file)
    assert in_graph.tokenize([text]).to_list() == [ids]


@pytest.mark.parametrize(
    "do_lower_case, text, words",
    [
        (True, "ah\u535a\u63a8zz", ["ah", "\u535a", "\u63a8", "zz"]),
        (
            True,
            " \tHeLLo!how  \n Are yoU?  ",
            ["hello", "!", "how", "are", "you", "?"],
        ),
        (True, "H\u00e9llo", ["hello"]),
        (
            False,
            " \tHeLLo!how  \n Are yoU?  ",
            ["HeLLo", "!", "how", "Are", "yoU", "?"],
        ),
    ],
)
def test_words_of_a_text(do_lower_case, text, words):
    assert basic.BasicTokenizer(do_lower_case).tokenize(text) == words


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("", []),
        ("unwanted running", ["un", "##want", "##ed", "runn", "##ing"]),
        ("unwantedX running", ["[UNK]", "runn", "##ing"]),
    ],
)
def test_pieces_of_words(text, pieces):
    vocabulary = {piece: index for index, piece in enumerate(PIECES)}
    assert wordpiece.WordpieceTokenizer(vocab=vocabulary).tokenize(text) == pieces


@pytest.mark.parametrize(
    "known, members, others",
    [
        (characters.WHITESPACE, " \t\r\n\u00a0", "A-"),
        (characters.DELETED, "\u0005", "A \t\r"),
        (characters.PUNCTUATION, "-$`.", "A "),
    ],
    ids=["white space", "control", "punctuation"],
)
def test_classes_of_characters(known, members, others):
    assert known.issuperset(map(ord, members))
    assert known.isdisjoint(map(ord, others))


def test_outputs_have_the_documented_shapes_and_depend_on_every_weight():
    config = config_module.BertConfig(
        vocab_size=99,
        hidden_size=32,
        num_hidden_layers=5,
        num_attention_heads=4,
        intermediate_size=37,
        type_vocab_size=16,
    )
    rng = np.random.RandomState(0)
    features = {
        "input_ids": rng.randint(0, 99, (13, 7)),
        "input_mask": rng.randint(0, 2, (13, 7)),
        "segment_ids": rng.randint(0, 16, (13, 7)),
    }
    model = bert_tf.BertModel(config)
    keys = dropout_masks.keys_of_examples(1, 0, np.arange(13, dtype="int32"))
    with tf.GradientTape() as tape:
        outputs = model(features, training=True, dropout_keys=keys)
        total = sum(map(keras.ops.sum, keras.tree.flatten(outputs)))
    assert outputs["embedding_output"].shape == (13, 7, 32)
    assert outputs["sequence_output"].shape == (13, 7, 32)
    assert outputs["pooled_output"].shape == (13, 32)
    assert [layer.shape for layer in outputs["all_encoder_layers"]] == [(13, 7, 32)] * 5
    weights = [weight.value for weight in model.trainable_variables]
    assert all(gradient is not None for gradient in tape.gradient(total, weights))


@pytest.mark.parametrize("create", [keras.Variable, tf.Variable])
def test_a_hundred_steps_reach_the_minimum_of_a_parabola(create):
    weight = create(np.array([0.1, -0.2, -0.1], "float32"), name="w")
    target = tf.constant([0.4, 0.2, -0.5])
    optimizer = adam_weight_decay.AdamWeightDecay(learning_rate=0.2)
    optimizer.build([weight])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            value = tf.convert_to_tensor(weight)
            tape.watch(value)
            loss = tf.reduce_mean(tf.square(target - value))
        optimizer.apply_gradients([(tape.gradient(loss, value), weight)])

    for _ in range(100):
        step()
    np.testing.assert_allclose(weight.numpy(), target, rtol=1e-2, atol=1e-2)
