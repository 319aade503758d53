"""The release's formulas, and dropout that depends on nothing but its arguments."""

import contextlib
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import numerics

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "gelu_pytorch_tanh"])
def test_gelu_is_the_tanh_form(name):
    x = np.linspace(-30, 30, 301).astype("float32")
    tanh = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.astype("float64") ** 3))
    computed = numerics.activation(name)(keras.ops.convert_to_tensor(x))
    np.testing.assert_allclose(computed, 0.5 * x * (1 + tanh), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-6), ("bfloat16", 8e-3)])
def test_the_gradient_of_gelu_is_its_slope(dtype, tolerance):
    x = tf.cast(tf.linspace(-8.0, 8.0, 161), dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = numerics.gelu(x)
    assert outputs.dtype == x.dtype
    gradient = tf.cast(tape.gradient(outputs, x, tf.ones_like(x)), "float64")
    v = np.asarray(tf.cast(x, "float64"))
    scale = math.sqrt(2 / math.pi)
    tanh = np.tanh(scale * (v + 0.044715 * v**3))
    slope = 0.5 * (1 + tanh)
    slope += 0.5 * v * (1 - tanh**2) * scale * (1 + 3 * 0.044715 * v**2)
    np.testing.assert_allclose(gradient, slope, atol=tolerance)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("gelu_erf", [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in (-1, 0, 2)]),
        ("relu", [0, 0, 2]),
        ("tanh", [math.tanh(v) for v in (-1, 0, 2)]),
        ("linear", [-1, 0, 2]),
    ],
)
def test_an_activation_is_what_its_name_says(name, expected):
    x = keras.ops.convert_to_tensor([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(numerics.activation(name)(x), expected, atol=1e-6)


def test_layer_norm_is_computed_in_float32():
    x = RANDOM.normal(size=(3, 64)).astype("float32")
    gamma, beta = RANDOM.normal(size=(2, 64)).astype("float32")
    low = keras.ops.cast(x, "bfloat16")
    computed = numerics.layer_norm(low, gamma, beta, 1e-12)
    x = np.asarray(keras.ops.cast(low, "float32"), "float64")
    expected = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    assert computed.dtype == tf.float32
    np.testing.assert_allclose(computed, expected * gamma + beta, atol=2e-6)


def test_softmax_of_low_precision_is_computed_in_float32():
    computed = numerics.softmax(keras.ops.convert_to_tensor([[0.0, 9.0]], "bfloat16"))
    assert computed.dtype == tf.float32
    np.testing.assert_allclose(computed[0, 0], 1 / (1 + math.exp(9)), rtol=1e-6)


def test_attention_may_look_where_the_mask_is_1():
    bias = numerics.attention_bias(np.array([[1, 0]], "int32"))
    np.testing.assert_array_equal(bias, [[[[0.0, -10000.0]]]])


# The forms of a formula: the usual one, and the one for XLA.
FORMS = [contextlib.nullcontext, numerics.xla_step]


@pytest.mark.parametrize("form", FORMS)
def test_cross_entropy_and_its_gradient_equal_the_formula(form):
    logits = (5 * RANDOM.normal(size=(6, 9))).astype("float32")
    logits[0] = [200, 0, 0, 0, 0, 0, 0, 0, -200]  # Probabilities that underflow.
    logits[1] += 10_000  # Their logarithms are small beside the logits.
    labels = np.array([8, 0, 1, 2, 3, 4], "int32")
    weights = RANDOM.normal(size=6).astype("float32")
    inputs = tf.constant(logits)
    with tf.GradientTape() as tape, form():
        tape.watch(inputs)
        losses = numerics.cross_entropy(inputs, labels)
    gradient = tape.gradient(losses, inputs, tf.constant(weights))

    shifted = logits.astype("float64") - logits.max(-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    expected = np.exp(log_probabilities) - np.eye(9)[labels]
    np.testing.assert_allclose(
        losses, -log_probabilities[np.arange(6), labels], rtol=1e-6
    )
    np.testing.assert_allclose(gradient, expected * weights[:, None], atol=1e-6)


def test_the_gradient_of_a_lookup_is_dense():
    table = tf.Variable(np.eye(4, 3, dtype="float32"))
    with tf.GradientTape() as tape:
        rows = numerics.lookup(table, tf.constant([2, 0, 2]))
    np.testing.assert_array_equal(rows, np.eye(4, 3)[[2, 0, 2]])
    gradient = tape.gradient(rows, table)
    assert isinstance(gradient, tf.Tensor)
    np.testing.assert_array_equal(gradient[:, 0], [1, 0, 2, 0])


# Dropout.


def masks(num_examples=32, length=512, rate=0.1, seed=1, step=2, site=3):
    keys = numerics.dropout_keys(seed, step, np.arange(num_examples, dtype="int32"))
    ones = np.ones((num_examples, length), "float32")
    return np.asarray(numerics.dropout(ones, rate, keys, site)) > 0


def agreement(a, b):
    """Correlation of two sets of masks."""
    return abs(np.corrcoef(a.ravel(), b.ravel())[0, 1])


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.003])
def test_dropout_drops_its_rate_and_keeps_the_mean(rate):
    keys = numerics.dropout_keys(0, 0, np.arange(64, dtype="int32"))
    ones = np.ones((64, 4096), "float32")
    outputs = np.asarray(numerics.dropout(ones, rate, keys, 1))
    deviation = math.sqrt(rate * (1 - rate) / ones.size)
    assert abs((outputs == 0).mean() - rate) < 5 * deviation
    assert abs(outputs.mean() - 1) < 5 * deviation / (1 - rate)
    kept = outputs[outputs > 0]
    np.testing.assert_allclose(kept, 1 / (1 - rate), rtol=2e-4)


@pytest.mark.parametrize(
    "change",
    [{"site": 4}, {"step": 3}, {"seed": 2}, {"seed": -1}, {"seed": 1 << 40}],
    ids=str,
)
def test_masks_of_another_place_step_or_run_are_independent(change):
    # 16,384 decisions: a correlation of 0.04 is five deviations away from 0.
    assert agreement(masks(), masks(**change)) < 0.04


def test_masks_within_a_batch_are_independent():
    values = masks(num_examples=64, length=4096).astype("float64")
    between_examples = np.corrcoef(values) - np.eye(64)
    assert np.abs(between_examples).max() < 6 / math.sqrt(4096)
    for distance in (1, 2, 64, 2048):  # The two halves of a word are 2048 apart.
        assert agreement(values[:, distance:], values[:, :-distance]) < 0.012


def test_the_number_of_dropped_elements_varies_as_it_should():
    dropped = (~masks(num_examples=2000, length=256)).sum(axis=1)
    expected = 256 * 0.1 * 0.9
    assert 0.85 < dropped.var() / expected < 1.15


def test_an_example_has_its_mask_however_the_batch_is_divided():
    x = RANDOM.normal(size=(8, 6, 5)).astype("float32")
    keys = numerics.dropout_keys(7, 11, np.arange(8, dtype="int32"))
    whole = np.asarray(numerics.dropout(x, 0.3, keys, 2))
    parts = [numerics.dropout(x[i : i + 2], 0.3, keys[i : i + 2], 2) for i in (0, 2, 4)]
    np.testing.assert_array_equal(np.concatenate(parts), whole[:6])


def test_rows_of_an_example_belong_to_its_key():
    x = RANDOM.normal(size=(4, 6, 5)).astype("float32")
    keys = numerics.dropout_keys(7, 11, np.arange(4, dtype="int32"))
    nested = np.asarray(numerics.dropout(x, 0.3, keys, 2))
    flat = numerics.dropout(x.reshape(24, 5), 0.3, keys, 2)
    np.testing.assert_array_equal(flat, nested.reshape(24, 5))


@pytest.mark.parametrize("length", [7, 8])  # Odd: half of the last word is unused.
def test_masks_are_the_same_eager_in_a_graph_and_under_xla(length):
    x = tf.constant(RANDOM.normal(size=(5, length)), tf.float32)

    def drop(x, step):
        keys = numerics.dropout_keys(3, step, tf.range(5))
        return numerics.dropout(x, 0.4, keys, 9)

    eager = drop(x, 6)
    np.testing.assert_array_equal(tf.function(drop)(x, tf.constant(6)), eager)
    compiled = tf.function(drop, jit_compile=True)
    np.testing.assert_array_equal(compiled(x, tf.constant(6)), eager)


def test_masks_are_the_same_where_shapes_are_not_known():
    x = tf.constant(RANDOM.normal(size=(5, 7)), tf.float32)
    keys = numerics.dropout_keys(3, 6, tf.range(5))
    signature = [tf.TensorSpec([None, None]), tf.TensorSpec([None], tf.uint32)]
    drop = tf.function(
        lambda x, keys: numerics.dropout(x, 0.4, keys, 9), input_signature=signature
    )
    np.testing.assert_array_equal(drop(x, keys), numerics.dropout(x, 0.4, keys, 9))


KEYS = [76048073, 1566740794, 2275622271]
DROPPED = ["000000001110", "101000011000", "100110110100"]


def test_masks_are_literally_these():
    # Were they to change, interrupted runs would not end with the same weights.
    keys = numerics.dropout_keys(12345, 0, np.arange(3, dtype="int32"))
    dropped = ~masks(num_examples=3, length=12, rate=0.5, seed=12345, step=0, site=0)
    assert [int(key) for key in keys] == KEYS
    assert ["".join(map(str, row.astype(int))) for row in dropped] == DROPPED


# Each element's 16 bits, of the example with the first of `KEYS` at site 0.
BITS = [48848, 53540, 53944, 39723, 53694, 40996, 10888, 11715]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(2, 5199), (6, 1733), (2, 3, 1733)])
def test_masks_of_many_elements_are_hashes_of_their_indices(form, shape):
    def mix(x):
        x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
        x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
        return x ^ (x >> 16)

    keys = np.asarray(numerics.dropout_keys(3, 4, np.arange(2, dtype="int32")))
    site_key = mix(mix(np.array([9 + 0x85EBCA6B], "uint32")))
    words = mix(np.arange(2600, dtype="uint32") ^ site_key) ^ keys[:, None]
    words = words * np.uint32(0x7FEB352D)
    words = (words ^ (words >> 15)) * np.uint32(0x846CA68B)
    words = words ^ (words >> 16)
    bits = np.concatenate([words & 0xFFFF, words >> 16], axis=1)[:, :5199]
    with form():
        outputs = numerics.dropout(np.ones(shape, "float32"), 0.1, keys, 9)
    is_kept = np.asarray(outputs).reshape(2, 5199) > 0
    np.testing.assert_array_equal(is_kept, bits >= 6554)


def test_both_forms_of_the_softmax_have_the_same_gradient():
    scores = tf.constant(5 * RANDOM.normal(size=(3, 7)), tf.float32)
    weights = tf.constant(RANDOM.normal(size=(3, 7)), tf.float32)
    found = []
    for form in FORMS:
        with tf.GradientTape() as tape, form():
            tape.watch(scores)
            softmax = numerics.softmax(scores)
        found.append((softmax, tape.gradient(softmax, scores, weights)))
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-6)
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-6)


@pytest.mark.parametrize("element, bits", list(enumerate(BITS)))
def test_an_element_is_dropped_if_its_bits_are_below_65536_times_the_rate(
    element, bits
):
    keys = numerics.dropout_keys(12345, 0, np.arange(1, dtype="int32"))
    ones = np.ones((1, len(BITS)), "float32")
    at_its_bits = numerics.dropout(ones, bits / 65536, keys, 0)
    just_above = numerics.dropout(ones, (bits + 1) / 65536, keys, 0)
    assert at_its_bits[0, element] > 0
    assert just_above[0, element] == 0


@pytest.mark.parametrize("rate, threshold", [(0.1, 6554), (0.5, 32768), (0.003, 197)])
def test_what_is_kept_is_divided_by_the_exact_share_that_is_kept(rate, threshold):
    keys = numerics.dropout_keys(0, 0, np.arange(1, dtype="int32"))
    kept = np.max(numerics.dropout(np.ones((1, 64), "float32"), rate, keys, 1))
    np.testing.assert_allclose(kept, 65536 / (65536 - threshold), rtol=1e-7)


def test_without_rate_or_keys_nothing_happens():
    x = tf.ones((2, 3))
    keys = numerics.dropout_keys(0, 0, tf.range(2))
    assert numerics.dropout(x, 0.0, keys, 1) is x
    assert numerics.dropout(x, 0.5, None, 1) is x


def test_dropout_keeps_the_dtype_and_drops_the_gradient():
    x = tf.Variable(tf.ones((2, 64), tf.bfloat16))
    keys = numerics.dropout_keys(0, 0, tf.range(2))
    with tf.GradientTape() as tape:
        outputs = numerics.dropout(x, 0.5, keys, 1)
    assert outputs.dtype == tf.bfloat16
    np.testing.assert_array_equal(tape.gradient(outputs, x), outputs)


def test_dropout_in_bfloat16_keeps_the_mean():
    x = tf.reshape(tf.linspace(1.0, 2.0, 4096), (2, 2048))
    keys = numerics.dropout_keys(0, 0, tf.range(2))
    exact = numerics.dropout(x, 0.1, keys, 1)
    rounded = numerics.dropout(tf.cast(x, tf.bfloat16), 0.1, keys, 1)
    # With the factor 1 / 0.9 rounded to bfloat16, the sum would be 0.16 % lower.
    total = tf.reduce_sum(tf.cast(rounded, tf.float32))
    np.testing.assert_allclose(total, tf.reduce_sum(exact), rtol=3e-4)
