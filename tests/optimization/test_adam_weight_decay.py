import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from bert_tf.optimization import adam_weight_decay

NAMES = ("kernel", "bias")


def reference_updates(weight, gradients, *, rate, decay, bias_correction=False):
    """Computes the formula of the optimizer's docstring in NumPy, float64."""
    m, v = np.zeros_like(weight), np.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        factor = np.sqrt(1 - 0.999**step) / (1 - 0.9**step) if bias_correction else 1
        weight = weight - rate * (factor * m / (np.sqrt(v) + 1e-6) + decay * weight)
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
@pytest.mark.parametrize("update", ["kernel", "plain", "compiled"])
@pytest.mark.parametrize("corrects", [False, True])
def test_updates_follow_the_formula(name, decay, update, corrects, monkeypatch):
    if update == "plain":  # The formula that other backends compute.
        monkeypatch.setattr(adam_weight_decay.keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr(adam_weight_decay, "MIN_COMPILED_ELEMENTS", 1)
    rng = np.random.RandomState(0)
    start = rng.randn(3, 2)
    gradients = rng.randn(5, 3, 2)
    weight = keras.Variable(start.astype("float32"), name=name)
    optimizer = adam_weight_decay.AdamWeightDecay(0.1, bias_correction=corrects)
    optimizer.compiles_updates = update == "compiled"
    optimizer.build([weight])
    for gradient in gradients:  # The scale is that of clipping.
        optimizer.update_step(ops.cast(2.0 * gradient, "float32"), weight, 0.1, 0.5)
        optimizer.iterations.assign_add(1)
    expected, m, v = reference_updates(
        start, gradients, rate=0.1, decay=decay, bias_correction=corrects
    )
    np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(optimizer.slots()["adam_m"][0].numpy(), m, rtol=1e-5)
    np.testing.assert_allclose(optimizer.slots()["adam_v"][0].numpy(), v, rtol=1e-5)


@pytest.mark.parametrize(
    "kind", [adam_weight_decay.AdamWeightDecay, adam_weight_decay.Lamb]
)
def test_optimizer_is_rebuilt_from_its_config(kind):
    optimizer = kind(0.1, weight_decay_rate=0.3, bias_correction=True)
    copy = kind.from_config(optimizer.get_config())
    assert copy.bias_correction is True
    assert copy.weight_decay_rate == 0.3
    assert copy.excluded_patterns == optimizer.excluded_patterns


@pytest.mark.parametrize(
    "kind", [adam_weight_decay.AdamWeightDecay, adam_weight_decay.Lamb]
)
def test_variables_of_tensorflow_are_updated_like_those_of_keras(kind):
    gradients = [np.array([0.5, -1.0], "float32"), np.array([0.2, 0.1], "float32")]
    updated = []
    for variable in (keras.Variable, tf.Variable):
        weights = [
            variable(np.array([1.0, 2.0], "float32"), name=name) for name in NAMES
        ]
        optimizer = kind(0.1)
        for _ in range(3):
            optimizer.apply_gradients(list(zip(gradients, weights, strict=True)))
        updated.append([weight.numpy() for weight in weights])
    np.testing.assert_array_equal(*updated)
    plain = [tf.Variable([1.0, 2.0]) for _ in NAMES]  # All are named "Variable:0".
    optimizer = kind(0.1)
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


@pytest.mark.parametrize("name", ["adamw", "lamb"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("in_graph", [False, True])
def test_weights_of_every_dtype_are_updated_alike(name, dtype, in_graph):
    def updated(dtype):
        weight = keras.Variable([1.0, 2.0], dtype=dtype, name="kernel")
        optimizer = adam_weight_decay.create_optimizer(0.1, 100, 0, name=name)
        optimizer.build([weight])

        def update():
            gradient = tf.constant([0.5, -1.0], dtype)
            optimizer.apply_gradients([(gradient, weight)])

        update = tf.function(update, autograph=False) if in_graph else update
        for _ in range(2):
            update()
        return weight.numpy()

    np.testing.assert_allclose(updated(dtype), updated("float32"), rtol=0.01)


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_weights_in_bfloat16_are_refused(name):
    weight = keras.Variable([1.0, 2.0], dtype="bfloat16", name="kernel")
    optimizer = adam_weight_decay.create_optimizer(0.1, 100, 0, name=name)
    with pytest.raises(ValueError, match=r'kernel is bfloat16, .*"mixed_bfloat16"'):
        optimizer.build([weight])
    optimizer.beta_2 = 0.99
    optimizer.build([weight])


def lamb_updates(weight, gradients, *, rate, decay, is_scaled):
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
def test_updates_of_lamb_follow_the_formula(name, decay, is_scaled, start):
    rng = np.random.RandomState(0)
    start = start * rng.randn(3, 2)
    gradients = rng.randn(5, 3, 2)
    weight = keras.Variable(start.astype("float32"), name=name)
    optimizer = adam_weight_decay.Lamb(0.1)
    optimizer.build([weight])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient.astype("float32"), weight)])
    expected, m, v = lamb_updates(
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
