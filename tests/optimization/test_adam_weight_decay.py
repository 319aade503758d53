import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import adam_weight_decay

NAMES = ("kernel", "bias")


def reference_updates(weight, gradients, *, rate, decay):
    """Computes the formula of the optimizer's docstring in NumPy, float64."""
    m, v = np.zeros_like(weight), np.zeros_like(weight)
    for gradient in gradients:
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        weight = weight - rate * (m / (np.sqrt(v) + 1e-6) + decay * weight)
    return weight, m, v


@pytest.mark.parametrize(
    "name, decay",
    [
        ("kernel", 0.01),
        ("bias", 0.0),  # The release does not decay biases and LayerNorm.
        ("output_bias", 0.0),
        ("LayerNorm_gamma", 0.0),
    ],
)
@pytest.mark.parametrize("update", ["kernel", "plain"])
def test_updates_follow_the_release_formula(name, decay, update, monkeypatch):
    if update == "plain":  # As on other backends.
        monkeypatch.setattr(adam_weight_decay.keras.backend, "backend", lambda: "jax")
    rng = np.random.RandomState(0)
    start = rng.randn(3, 2)
    gradients = rng.randn(5, 3, 2)
    weight = keras.Variable(start.astype("float32"), name=name)
    optimizer = adam_weight_decay.AdamWeightDecay(0.1)
    optimizer.build([weight])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient.astype("float32"), weight)])
    expected, m, v = reference_updates(start, gradients, rate=0.1, decay=decay)
    np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(optimizer.slots()["adam_m"][0].numpy(), m, rtol=1e-5)
    np.testing.assert_allclose(optimizer.slots()["adam_v"][0].numpy(), v, rtol=1e-5)


def test_optimizer_is_rebuilt_from_its_config():
    optimizer = adam_weight_decay.AdamWeightDecay(0.1, weight_decay_rate=0.3)
    copy = adam_weight_decay.AdamWeightDecay.from_config(optimizer.get_config())
    assert copy.weight_decay_rate == 0.3
    assert copy.excluded_patterns == optimizer.excluded_patterns


def test_variables_of_tensorflow_are_updated_like_those_of_keras():
    gradients = [np.array([0.5, -1.0], "float32"), np.array([0.2, 0.1], "float32")]
    updated = []
    for variable in (keras.Variable, tf.Variable):
        weights = [
            variable(np.array([1.0, 2.0], "float32"), name=name) for name in NAMES
        ]
        optimizer = adam_weight_decay.AdamWeightDecay(0.1)
        for _ in range(3):
            optimizer.apply_gradients(list(zip(gradients, weights, strict=True)))
        updated.append([weight.numpy() for weight in weights])
    np.testing.assert_array_equal(*updated)
    plain = [tf.Variable([1.0, 2.0]) for _ in NAMES]  # All are named "Variable:0".
    optimizer = adam_weight_decay.AdamWeightDecay(0.1)
    for _ in range(3):
        optimizer.apply_gradients(list(zip(gradients, plain, strict=True)))
    np.testing.assert_array_equal(plain[0], updated[1][0])
    assert not np.array_equal(plain[1], updated[1][1])  # Only the bias does not decay.


@pytest.mark.parametrize(
    "excluded, decays",
    [({}, [1, 1]), ({"var_names": ["kernel"]}, [0, 1]), ({"var_list": [1]}, [1, 0])],
)
def test_weights_can_be_excluded_with_the_method_of_keras(excluded, decays):
    weights = [keras.Variable([1.0], name=name) for name in ("kernel", "table")]
    if "var_list" in excluded:
        excluded = {"var_list": [weights[i] for i in excluded["var_list"]]}
    optimizer = adam_weight_decay.AdamWeightDecay(1.0, weight_decay_rate=0.5)
    optimizer.exclude_from_weight_decay(**excluded)
    optimizer.apply_gradients([(np.zeros(1, "float32"), weight) for weight in weights])
    expected = [[1 - 0.5 * decay] for decay in decays]
    np.testing.assert_allclose([weight.numpy() for weight in weights], expected)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"weight_decay": 0.05}, "pass weight_decay_rate instead"),
        ({"exclude_from_weight_decay": "bias"}, "got the string 'bias'"),
    ],
)
def test_arguments_that_would_decay_other_weights_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        adam_weight_decay.AdamWeightDecay(0.1, **values)
