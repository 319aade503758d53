"""Initial values of weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from bert_tf import machine
from bert_tf.modeling import initial_values

SHAPE = (600, 500)  # Three blocks, the last one partial.


def drawn(seed, shape=SHAPE, **settings):
    return np.asarray(
        initial_values.TruncatedNormal(seed=seed, **settings)(shape, "float32")
    )


def test_values_have_the_distribution_of_a_truncated_normal():
    values = drawn(7, mean=0.5, stddev=0.02).ravel()
    assert np.abs(values - 0.5).max() <= 0.04 + 1e-6
    expected = stats.truncnorm(-2, 2, loc=0.5, scale=0.02)
    assert stats.kstest(values, expected.cdf).pvalue > 1e-3


def test_neighboring_blocks_numbers_and_seeds_are_uncorrelated():
    values = drawn(7).ravel()
    block = initial_values._BLOCK
    pairs = [
        (values[:block], values[block : 2 * block]),
        (values[:-1], values[1:]),
        (values, drawn(8).ravel()),
    ]
    for first, second in pairs:
        assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(len(first))


@pytest.mark.parametrize("num_cores", [1, 5])
def test_the_number_of_cores_does_not_matter(num_cores, monkeypatch):
    expected = drawn(7)
    monkeypatch.setattr(machine, "num_cores", lambda: num_cores)
    np.testing.assert_array_equal(drawn(7), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_values_are_rounded_to_the_dtype(dtype):
    initializer = initial_values.TruncatedNormal(stddev=0.02, seed=7)
    values = initializer((3, 4), dtype=dtype)
    assert keras.backend.standardize_dtype(values.dtype) == dtype
    np.testing.assert_allclose(
        tf.cast(values, "float32"), drawn(7, (3, 4), stddev=0.02), rtol=0.01
    )


def test_seeds_of_their_own_differ_and_follow_that_of_keras():
    draws = []
    for _ in range(2):
        keras.utils.set_random_seed(5)
        draws.append([drawn(None, (5,)), drawn(None, (5,))])
    np.testing.assert_array_equal(*draws)
    assert not np.array_equal(*draws[0])


def test_functions_and_replicas_get_the_same_values():
    initializer = initial_values.TruncatedNormal(seed=7)
    traced = tf.function(lambda: initializer((5,)), autograph=False)()
    np.testing.assert_array_equal(traced, drawn(7, (5,), stddev=0.05))
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        variable = keras.Variable(initializer, shape=(5,))
    np.testing.assert_array_equal(variable, traced)
