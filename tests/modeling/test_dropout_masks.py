"""Dropout that depends on nothing but its arguments."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import whole_step

RANDOM = np.random.default_rng(5)


def drop(x, rate, keys, site):
    dropout = dropout_masks.at(keys, site, rate)
    return dropout_masks.applied(x, dropout)


def masks(num_examples=32, length=512, rate=0.1, seed=1, step=2, site=3):
    keys = dropout_masks.keys_of_examples(
        seed, step, np.arange(num_examples, dtype="int32")
    )
    ones = np.ones((num_examples, length), "float32")
    return np.asarray(drop(ones, rate, keys, site)) > 0


def agreement(a, b):
    """Correlation of two sets of masks."""
    return abs(np.corrcoef(a.ravel(), b.ravel())[0, 1])


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
    assert np.abs(np.corrcoef(values) - np.eye(64)).max() < 6 / 64
    for distance in (1, 2, 64, 2048):  # The two halves of a word are 2048 apart.
        assert agreement(values[:, distance:], values[:, :-distance]) < 0.012


def test_an_example_has_its_mask_however_the_batch_is_divided():
    x = RANDOM.normal(size=(8, 6, 5)).astype("float32")
    keys = dropout_masks.keys_of_examples(7, 11, np.arange(8, dtype="int32"))
    whole = np.asarray(drop(x, 0.3, keys, 2))
    parts = [drop(x[i : i + 2], 0.3, keys[i : i + 2], 2) for i in (0, 2, 4)]
    np.testing.assert_array_equal(np.concatenate(parts), whole[:6])


@pytest.mark.parametrize("length", [7, 8])  # Odd: half of the last word is unused.
def test_masks_are_the_same_eager_in_a_graph_and_under_xla(length):
    x = tf.constant(RANDOM.normal(size=(5, length)), tf.float32)

    def draw(x, step):
        keys = dropout_masks.keys_of_examples(3, step, tf.range(5))
        return drop(x, 0.4, keys, 9)

    eager = draw(x, 6)
    np.testing.assert_array_equal(tf.function(draw)(x, tf.constant(6)), eager)
    compiled = tf.function(draw, jit_compile=True)
    np.testing.assert_array_equal(compiled(x, tf.constant(6)), eager)


KEYS = [76048073, 1566740794, 2275622271]
DROPPED = ["000000001110", "101000011000", "100110110100"]


def test_masks_are_literally_these():
    # Were they to change, interrupted runs would not end with the same weights.
    keys = dropout_masks.keys_of_examples(12345, 0, np.arange(3, dtype="int32"))
    dropped = ~masks(num_examples=3, length=12, rate=0.5, seed=12345, step=0, site=0)
    assert [int(key) for key in keys] == KEYS
    assert ["".join(map(str, row.astype(int))) for row in dropped] == DROPPED


# Each element's 16 bits, of the example with the first of `KEYS` at site 0.
BITS = [48848, 53540, 53944, 39723, 53694, 40996, 10888, 11715]


@pytest.mark.parametrize("k", [cpu.Cpu(), whole_step.WholeStep()])
@pytest.mark.parametrize("shape", [(2, 5199), (6, 1733), (2, 3, 1733)])
def test_masks_of_many_elements_are_hashes_of_their_indices(k, shape):
    def mix(x):
        x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
        x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
        return x ^ (x >> 16)

    keys = np.asarray(dropout_masks.keys_of_examples(3, 4, np.arange(2, dtype="int32")))
    site_key = mix(mix(np.array([9 + 0x85EBCA6B], "uint32")))
    words = mix(np.arange(2600, dtype="uint32") ^ site_key) ^ keys[:, None]
    words = words * np.uint32(0x7FEB352D)
    words = (words ^ (words >> 15)) * np.uint32(0x846CA68B)
    words = words ^ (words >> 16)
    bits = np.concatenate([words & 0xFFFF, words >> 16], axis=1)[:, :5199]
    outputs = k.dropout(
        tf.ones(shape), dropout_masks.Dropout(keys=keys, site=9, rate=0.1)
    )
    is_kept = np.asarray(outputs).reshape(2, 5199) > 0
    np.testing.assert_array_equal(is_kept, bits >= 6554)


@pytest.mark.parametrize("element, bits", list(enumerate(BITS)))
def test_an_element_is_dropped_if_its_bits_are_below_65536_times_the_rate(
    element, bits
):
    keys = dropout_masks.keys_of_examples(12345, 0, np.arange(1, dtype="int32"))
    ones = np.ones((1, len(BITS)), "float32")
    at_its_bits = drop(ones, bits / 65536, keys, 0)
    just_above = drop(ones, (bits + 1) / 65536, keys, 0)
    assert at_its_bits[0, element] > 0
    assert just_above[0, element] == 0


@pytest.mark.parametrize("rate, threshold", [(0.1, 6554), (0.5, 32768), (0.003, 197)])
def test_what_is_kept_is_divided_by_the_exact_share_that_is_kept(rate, threshold):
    keys = dropout_masks.keys_of_examples(0, 0, np.arange(1, dtype="int32"))
    kept = np.max(drop(np.ones((1, 64), "float32"), rate, keys, 1))
    np.testing.assert_allclose(kept, 65536 / (65536 - threshold), rtol=1e-7)


def test_without_rate_or_keys_nothing_happens():
    x = tf.ones((2, 3))
    keys = dropout_masks.keys_of_examples(0, 0, tf.range(2))
    assert drop(x, 0.0, keys, 1) is x
    assert drop(x, 0.5, None, 1) is x


def test_dropout_keeps_the_dtype_and_drops_the_gradient():
    x = tf.Variable(tf.ones((2, 64), tf.bfloat16))
    keys = dropout_masks.keys_of_examples(0, 0, tf.range(2))
    with tf.GradientTape() as tape:
        outputs = drop(x, 0.5, keys, 1)
    assert outputs.dtype == tf.bfloat16
    np.testing.assert_array_equal(tape.gradient(outputs, x), outputs)


def test_dropout_in_bfloat16_keeps_the_mean():
    x = tf.reshape(tf.linspace(1.0, 2.0, 4096), (2, 2048))
    keys = dropout_masks.keys_of_examples(0, 0, tf.range(2))
    exact = drop(x, 0.1, keys, 1)
    rounded = drop(tf.cast(x, tf.bfloat16), 0.1, keys, 1)
    # With the factor 1 / 0.9 rounded to bfloat16, the sum would be 0.16 % lower.
    total = tf.reduce_sum(tf.cast(rounded, tf.float32))
    np.testing.assert_allclose(total, tf.reduce_sum(exact), rtol=3e-4)
