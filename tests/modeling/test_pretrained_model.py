"""What a call and the other methods of a model take besides features."""

import collections

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.modeling import keras_model
from tests.modeling import small_config

CONFIG = small_config.create(num_hidden_layers=2, initializer_range=0.5)
IDS = np.array([[2, 7, 9, 3], [2, 5, 3, 0]], "int32")
MASK = np.minimum(IDS, 1)
SEGMENTS = np.array([[0, 0, 1, 1], [0, 0, 0, 0]], "int32")
FEATURES = {"input_ids": IDS, "input_mask": MASK, "segment_ids": SEGMENTS}
THEIRS = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": SEGMENTS}


@pytest.fixture(scope="module")
def model():
    return bert_tf.BertModel(CONFIG)


def vectors(model, *args, **kwargs):
    return np.asarray(model(*args, **kwargs)["sequence_output"])


def test_features_come_in_the_forms_that_other_libraries_have(model):
    expected = vectors(model, FEATURES)
    for features in (THEIRS, collections.UserDict(THEIRS)):
        np.testing.assert_array_equal(vectors(model, features), expected)
    np.testing.assert_array_equal(vectors(model, **THEIRS, training=False), expected)
    predicted = model.predict(collections.UserDict(THEIRS), verbose=0)
    np.testing.assert_allclose(predicted["sequence_output"], expected, atol=1e-5)
    for ids in (IDS.tolist(), IDS.astype("uint8"), IDS.astype("uint16")):
        np.testing.assert_array_equal(vectors(model, ids), vectors(model, IDS))


@pytest.mark.parametrize("real", [True, 2, -1, 0.5])
def test_a_mask_that_is_not_0_means_a_real_piece(model, real):
    mask = tf.constant(np.where(MASK, real, 0 * real))
    features = {**FEATURES, "input_mask": mask}
    np.testing.assert_array_equal(vectors(model, features), vectors(model, FEATURES))


def test_vectors_may_replace_those_of_the_words(model):
    table = np.asarray(model.embeddings.word_embeddings)
    without_ids = {"input_mask": MASK, "segment_ids": SEGMENTS}
    embeds = tf.Variable(table[IDS])
    with tf.GradientTape() as tape:
        found = model({**without_ids, keras_model.EMBEDDINGS: embeds})
        loss = tf.reduce_sum(found["pooled_output"] ** 2)
    expected = vectors(model, FEATURES)
    np.testing.assert_allclose(found["sequence_output"], expected, atol=1e-5)
    assert np.any(tape.gradient(loss, embeds))


@pytest.mark.parametrize(
    "features, message",
    [
        ({**FEATURES, "segment_ids": 3 * SEGMENTS}, "segment_ids has values from 0 to"),
        ({"input_ids": IDS + 1000}, "input_ids has values from 1000 to 1009"),
        (IDS[0], r"shape \(4,\), expected \[B, S\]; pass a single text as ids\[None"),
    ],
)
def test_what_has_no_meaning_is_refused(model, features, message):
    with pytest.raises(ValueError, match=message):
        model(features)


@pytest.mark.parametrize("config", ["bert-base-uncased", {}, "encoder"])
def test_a_model_says_how_to_get_the_weights_of_a_checkpoint(model, config):
    with pytest.raises(TypeError, match=r"takes a BertConfig.*from_pretrained\(name\)"):
        bert_tf.BertRegressor(model if config == "encoder" else config)


def test_a_pretrainer_without_positions_scores_all(model):
    pretrainer = bert_tf.BertPretrainer(CONFIG)
    positions = np.tile(np.arange(4), (2, 1))
    expected = pretrainer({**FEATURES, "masked_lm_positions": positions})
    np.testing.assert_array_equal(
        pretrainer(FEATURES)["masked_lm_logits"], expected["masked_lm_logits"]
    )


def test_a_model_whose_layers_were_removed_is_not_saved():
    model = bert_tf.BertClassifier(CONFIG, num_labels=2)
    model.bert.encoder.encoder_layers = model.bert.encoder.encoder_layers[:1]
    with pytest.raises(ValueError, match="set num_hidden_layers of the configuration"):
        model.get_config()


def test_the_rate_of_dropout_can_be_chosen():
    model = bert_tf.BertClassifier(CONFIG, num_labels=2, dropout=0.5)
    assert type(model).from_config(model.get_config()).task_dropout_rate == 0.5
    assert "dropout" not in bert_tf.BertClassifier(CONFIG, num_labels=2).get_config()
    for name, rate in (("BertSpanPredictor", 0.1), ("BertRegressor", 1.0)):
        with pytest.raises(ValueError, match="expected a rate from 0 to below 1"):
            getattr(bert_tf, name)(CONFIG, dropout=rate)
