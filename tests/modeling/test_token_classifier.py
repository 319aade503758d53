"""BertTokenClassifier: names, head, losses, and what it learns from layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import recurrent
from bert_tf.modeling import token_classifier
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.tasks.token_classification import options as token_classification_options
from tests.modeling import small_config

FOUR_LAYERS = small_config.create(num_hidden_layers=4)
TAGS = np.array([[-1, 1, 2, -1], [-1, 0, -1, -1]], "int32")
FEATURES = {**small_config.FEATURES, "tag_ids": TAGS}


def create(feature_based=None):
    keras.utils.set_random_seed(1)
    model = token_classifier.BertTokenClassifier(
        FOUR_LAYERS, num_labels=3, feature_based=feature_based
    )
    model.build()
    return model


def test_the_loss_is_the_mean_over_pieces_with_a_tag():
    model = create()
    outputs = model(FEATURES)
    log = np.log(np.asarray(outputs["probabilities"]))
    expected = -np.mean([log[0, 1, 1], log[0, 2, 2], log[1, 1, 0]])
    np.testing.assert_allclose(model.total_loss(FEATURES, outputs), expected, rtol=1e-6)
    assert float(model.loss_weights(FEATURES)["tag_loss"]) == 3
    best = np.argmax(log, axis=-1)
    hits = sum([best[0, 1] == 1, best[0, 2] == 2, best[1, 1] == 0])
    accuracy = model.metric_sums(FEATURES, outputs)["accuracy"]
    assert [float(value) for value in accuracy] == [hits, 3]


def test_options_offer_the_models_ways_to_use_the_layers():
    assert (
        tuple(token_classifier.FEATURE_BASED)
        == token_classification_options.FEATURE_BASED
    )


@pytest.mark.parametrize(
    "feature_based, numbers, width",
    [
        ("embeddings", [0], 8),
        ("second_to_last", [3], 8),
        ("last", [4], 8),
        ("weighted_sum_last_four", [1, 2, 3, 4], 8),
        ("concat_last_four", [1, 2, 3, 4], 32),
        ("weighted_sum_all", [1, 2, 3, 4], 8),
    ],
)
def test_the_layers_of_table_7_are_put_together(feature_based, numbers, width):
    mix = token_classifier.LayerMix(FOUR_LAYERS, feature_based)
    mix.build()
    layers = [np.full((1, 2, 8), 2.0**number, "float32") for number in range(5)]
    mixed = np.asarray(mix(layers))
    assert mixed.shape == (1, 2, mix.width) == (1, 2, width)
    used = [layers[number] for number in numbers]
    is_sum = feature_based.startswith("weighted")
    # At first all layers weigh the same, and the scale is 1.
    expected = np.mean(used, axis=0) if is_sum else np.concatenate(used, axis=-1)
    np.testing.assert_allclose(mixed, expected, rtol=1e-6)
    if is_sum:
        mix.weights_of_layers.assign([0.0, 0.0, 0.0, np.log(3.0)])
        mix.scale.assign(6.0)
        weighed = layers[1] + layers[2] + layers[3] + 3 * layers[4]
        np.testing.assert_allclose(np.asarray(mix(layers)), weighed, rtol=1e-5)


@pytest.mark.parametrize(
    "feature_based, num_layers, message",
    [
        ("first", 4, "Unknown feature_based 'first'; expected one of embeddings"),
        ("concat_last_four", 3, "needs 4 layers, but the encoder has 3"),
        ("second_to_last", 1, "needs 2 layers, but the encoder has 1"),
    ],
)
def test_layers_that_are_not_there_are_refused(feature_based, num_layers, message):
    small = small_config.create(num_hidden_layers=num_layers)
    with pytest.raises(ValueError, match=message):
        token_classifier.BertTokenClassifier(
            small, num_labels=3, feature_based=feature_based
        )


@pytest.mark.parametrize("feature_based", ["weighted_sum_all", "concat_last_four"])
def test_of_a_feature_based_model_the_encoder_does_not_learn(feature_based):
    model = create(feature_based)
    trained = {weight.path for weight in model.trainable_variables}
    assert len(trained) > 10
    assert not any("/bert/" in path for path in trained)
    keys = dropout_masks.keys_of_examples(1, 2, np.arange(2, dtype="int32"))
    with tf.GradientTape() as tape:
        outputs = model(FEATURES, training=True, dropout_keys=keys)
        loss = model.total_loss(FEATURES, outputs)
    gradients = tape.gradient(loss, [w.value for w in model.trainable_variables])
    for weight, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert gradient is not None, weight.path
    # Variables that are no weights: the seeds of the model and of its encoder. Keras's
    # own LSTM would bring more.
    assert len(model.variables) == len(model.weights) + 2


def test_a_feature_based_model_drops_nothing_in_the_encoder(monkeypatch):
    seen, mix = [], token_classifier.LayerMix.call

    def watched(self, layers):
        seen.append([np.asarray(layer) for layer in layers])
        return mix(self, layers)

    monkeypatch.setattr(token_classifier.LayerMix, "call", watched)
    model = create("last")
    keys = dropout_masks.keys_of_examples(1, 2, np.arange(2, dtype="int32"))
    outputs = [
        model(FEATURES, training=training, dropout_keys=keys)["logits"]
        for training in (True, False)
    ]
    np.testing.assert_array_equal(seen[0], seen[1])
    assert np.max(np.abs(outputs[0] - outputs[1])) > 1e-4  # The head's own dropout.


def test_padding_changes_nothing_for_a_bilstm():
    model = create("last")
    cut = {name: column[1:, :3] for name, column in FEATURES.items()}
    without_mask = {"input_ids": cut["input_ids"]}
    padded = np.asarray(model(FEATURES)["logits"])[1:, :3]
    for features in (cut, without_mask):
        np.testing.assert_allclose(model(features)["logits"], padded, atol=1e-6)


def test_the_bilstm_is_keras_lstm_in_both_directions():
    keras.utils.set_random_seed(2)
    ours = recurrent.BiLSTM(3, 2)
    ours.build(5)
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(2, 6, 5)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]], "int32")
    expected = inputs
    for pair in zip(ours.forward_layers, ours.backward_layers, strict=True):
        parts = [keras_output(one, expected, mask > 0) for one in pair]
        expected = np.concatenate(parts, axis=-1)
    np.testing.assert_allclose(ours(inputs, mask), expected, atol=1e-6)


def keras_output(ours, inputs, mask):
    layer = keras.layers.LSTM(
        ours.units, return_sequences=True, go_backwards=ours.go_backwards
    )
    layer.build((None, None, inputs.shape[-1]))
    cell = ours.recurrence.cell
    layer.set_weights([ours.input_projection.kernel, cell.kernel, cell.bias])
    output = np.asarray(layer(inputs, mask=mask))
    return np.flip(output, axis=1) if ours.go_backwards else output
