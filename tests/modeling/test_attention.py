"""The dense layer of all sublayers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import attention


def dense_layer(shape, **settings):
    keras.utils.set_random_seed(1)
    layer = attention.Dense(3, dtype="mixed_bfloat16", **settings)
    layer.build(shape)
    return layer


@pytest.mark.parametrize("mode", ["eager", "graph", "any number of rows"])
@pytest.mark.parametrize("shape", [(4096, 5), (64, 64, 5)])
def test_gradients_in_bfloat16_are_those_of_exact_sums(shape, mode):
    rng = np.random.default_rng(1)
    # Gradients with a mean: sums that are rounded at every row would stop growing.
    inputs, upstream = rng.normal(1, 1, shape), rng.normal(1, 1, (*shape[:-1], 3))
    layer = dense_layer(shape)

    def gradients(inputs, upstream):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs)
        sources = [inputs, layer.kernel.value, layer.bias.value]
        return tape.gradient(outputs, sources, output_gradients=upstream)

    rows = None if mode == "any number of rows" else shape[0]
    specs = [tf.TensorSpec([rows, *shape[1:-1], n], "bfloat16") for n in (5, 3)]
    in_graph = tf.function(gradients, input_signature=specs)
    compute = gradients if mode == "eager" else in_graph
    found = compute(tf.constant(inputs, "bfloat16"), tf.constant(upstream, "bfloat16"))
    rows, of_rows = inputs.reshape(-1, 5), upstream.reshape(-1, 3)
    of_inputs = upstream @ layer.kernel.numpy().T
    exact = of_inputs, rows.T @ of_rows, of_rows.sum(axis=0)
    for computed, expected in zip(found, exact, strict=True):
        error = np.linalg.norm(tf.cast(computed, "float64") - expected)
        assert error < 0.01 * np.linalg.norm(expected)


@pytest.mark.parametrize("settings", [{"activation": "relu"}, {"use_bias": False}])
def test_keras_settings_apply_in_bfloat16_too(settings):
    layer = dense_layer((2, 5), **settings)
    inputs = np.random.default_rng(1).normal(size=(2, 5))
    expected = inputs @ layer.kernel.numpy()
    if "activation" in settings:
        expected = np.maximum(expected, 0.0)
    np.testing.assert_allclose(
        tf.cast(layer(tf.constant(inputs, "bfloat16")), "float64"), expected, atol=0.05
    )
