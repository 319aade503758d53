import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import adam_weight_decay


def reference_updates(weight, gradients, *, rate, decay, is_scaled):
    """Computes the formula of the optimizer's docstring in NumPy, float64."""
    m, v = np.zeros_like(weight), np.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        update = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-6)
        update = update + decay * weight
        norms = np.linalg.norm(weight), np.linalg.norm(update)
        ratio = norms[0] / norms[1] if is_scaled and min(norms) > 0 else 1.0
        weight = weight - rate * ratio * update
    return weight, m, v


@pytest.mark.parametrize(
    "name, decay, is_scaled, start",
    [
        ("kernel", 0.01, True, 1.0),
        ("kernel", 0.01, True, 0.0),  # A norm of 0: the step of Adam.
        ("bias", 0.0, False, 1.0),
        ("output_bias", 0.0, False, 1.0),
        ("LayerNorm_gamma", 0.0, False, 1.0),
    ],
)
def test_updates_follow_the_formula(name, decay, is_scaled, start):
    rng = np.random.RandomState(0)
    start = start * rng.randn(3, 2)
    gradients = rng.randn(5, 3, 2)
    weight = keras.Variable(start.astype("float32"), name=name)
    optimizer = adam_weight_decay.Lamb(0.1)
    optimizer.build([weight])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient.astype("float32"), weight)])
    expected, m, v = reference_updates(
        start, gradients, rate=0.1, decay=decay, is_scaled=is_scaled
    )
    np.testing.assert_allclose(weight.numpy(), expected, rtol=2e-5)
    np.testing.assert_allclose(optimizer.slots()["lamb_m"][0].numpy(), m, rtol=1e-5)
    np.testing.assert_allclose(optimizer.slots()["lamb_v"][0].numpy(), v, rtol=1e-5)


def test_the_gradient_of_a_lookup_is_that_of_the_whole_table():
    table = keras.Variable(np.ones((3, 2), "float32"), name="table")
    other = keras.Variable(np.ones((3, 2), "float32"), name="table")
    rows = tf.IndexedSlices(tf.ones((2, 2)), tf.constant([0, 2]), tf.constant([3, 2]))
    adam_weight_decay.Lamb(0.1).apply_gradients([(rows, table)])
    adam_weight_decay.Lamb(0.1).apply_gradients([(tf.convert_to_tensor(rows), other)])
    np.testing.assert_array_equal(table.numpy(), other.numpy())
