"""Initial values of weights."""

import keras
import numpy as np
import pytest
from scipy import stats

from bert_tf import cores
from bert_tf.modeling import initial_values

SHAPE = (600, 500)  # Two blocks and a half.


def drawn(seed, shape=SHAPE, **settings):
    return np.asarray(
        initial_values.TruncatedNormal(seed=seed, **settings)(shape, "float32")
    )


def test_values_have_the_distribution_of_a_truncated_normal():
    values = drawn(7, mean=0.5, stddev=0.02).ravel()
    assert np.abs(values - 0.5).max() <= 0.04 + 1e-6
    expected = stats.truncnorm(-2, 2, loc=0.5, scale=0.02)
    assert stats.kstest(values, expected.cdf).pvalue > 1e-3


def test_neighboring_blocks_rows_and_seeds_are_independent():
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
    monkeypatch.setattr(cores, "num_available", lambda: num_cores)
    np.testing.assert_array_equal(drawn(7), expected)


def test_dtype_and_shape_are_those_asked_for():
    initializer = initial_values.TruncatedNormal(seed=1)
    values = initializer((3, 4), dtype="bfloat16")
    assert keras.backend.standardize_dtype(values.dtype) == "bfloat16"
    assert tuple(values.shape) == (3, 4)
    assert initializer(()).shape == ()
    assert initializer((0, 4)).shape == (0, 4)
    assert keras.backend.standardize_dtype(initializer((2,)).dtype) == "float32"


def test_a_seed_generator_as_seed_advances():
    seed = keras.random.SeedGenerator(3)
    initializer = initial_values.TruncatedNormal(seed=seed)
    first, second = (np.asarray(initializer((4,))) for _ in range(2))
    assert not np.array_equal(first, second)


def test_the_configuration_restores_the_initializer():
    initializer = initial_values.TruncatedNormal(stddev=0.3, seed=5)
    config = keras.initializers.serialize(initializer)
    copy = keras.initializers.deserialize(config)
    assert type(copy) is initial_values.TruncatedNormal
    np.testing.assert_array_equal(copy((9,)), initializer((9,)))
