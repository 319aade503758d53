"""Islands: their reductions in two stages."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling.kernels import islands
from tests import ring


def random(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


REDUCTIONS = {"sum": keras.ops.sum, "max": keras.ops.max, "mean": keras.ops.mean}


def reduce_squares(name, x):
    """Returns a reduction of squares, computed by an island."""

    @islands.inner_island
    def compute(x):
        return islands.reduce_rows(REDUCTIONS[name], x, keras.ops.square)

    return tf.function(compute, autograph=False)(tf.constant(x)).numpy()


@pytest.mark.parametrize(
    "num_columns",
    ring.quick(1, 768, 1100, of=(1, 64, 312, 768, 1000, 1024, 1100, 5003)),
)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reducing_rows_gives_what_a_single_stage_gives(name, num_columns):
    x = random(3, num_columns)
    expected = getattr(np, name)(x**2, axis=-1, keepdims=True)
    np.testing.assert_allclose(reduce_squares(name, x), expected, rtol=1e-6)
    half = reduce_squares(name, x.astype(tf.bfloat16.as_numpy_dtype))
    assert half.dtype == tf.bfloat16
    np.testing.assert_allclose(half.astype("float32"), expected, rtol=2**-7)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_two_stages_keep_what_is_not_finite(value):
    x = random(2, 64)
    x[1, 40] = value
    for name in ("sum", "mean"):
        result = reduce_squares(name, x)
        assert np.isfinite(result[0])
        assert not np.isfinite(result[1])
