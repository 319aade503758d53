"""One vector per text from the vectors of its pieces."""

import keras
import numpy as np
import pytest
from keras import ops

from bert_tf.modeling import pooling as pooling_module

NAN = float("nan")
# Two texts, three pieces each, two dimensions; what is padding must not count.
VECTORS = [
    [[1.0, -4.0], [3.0, -2.0], [NAN, 100.0]],
    [[5.0, -1.0], [100.0, NAN], [100.0, NAN]],
]
MASK = [[1, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("cls", [[1.0, -4.0], [5.0, -1.0]]),
        ("mean", [[2.0, -3.0], [5.0, -1.0]]),
        ("max", [[3.0, -2.0], [5.0, -1.0]]),  # Not 0, where all are negative.
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_text_becomes_one_vector(kind, expected, dtype):
    outputs = {"sequence_output": ops.cast(VECTORS, dtype)}
    pooled = pooling_module.pool(outputs, ops.array(MASK, "int32"), kind)
    assert ops.dtype(pooled) == "float32"
    np.testing.assert_array_equal(pooled, expected)
    layer = pooling_module.Pooling(kind, dtype=dtype)
    layer = pooling_module.Pooling.from_config(layer.get_config())
    np.testing.assert_array_equal(layer(outputs, ops.array(MASK)), expected)


def test_pooling_is_a_layer_of_symbolic_outputs():
    outputs = {"sequence_output": keras.KerasTensor((None, 3, 2), "float16")}
    layer = pooling_module.Pooling("mean", normalize=True)
    pooled = layer(outputs, keras.KerasTensor((None, 3), "int32"))
    assert (pooled.shape, pooled.dtype) == ((None, 2), "float32")
    shape = {"sequence_output": (None, 3, 2)}
    assert layer.compute_output_shape(shape, (None, 3)) == (None, 2)
    vectors = layer({"sequence_output": ops.array(VECTORS)}, ops.array(MASK))
    np.testing.assert_allclose(ops.norm(vectors, axis=-1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("kind", ["mean", "max"])
def test_a_text_without_pieces_becomes_zeros(kind):
    outputs = {"sequence_output": ops.ones((1, 3, 2))}
    pooled = pooling_module.pool(outputs, ops.zeros((1, 3), "int32"), kind)
    np.testing.assert_array_equal(pooled, [[0.0, 0.0]])


def test_the_mean_of_many_equal_vectors_is_exact_in_half_precision():
    # 300 ones do not add up to 300 in bfloat16, which has 8 bits.
    outputs = {"sequence_output": ops.ones((1, 300, 1), "bfloat16")}
    pooled = pooling_module.pool(outputs, ops.ones((1, 300), "int32"), "mean")
    np.testing.assert_array_equal(pooled, [[1.0]])


def test_normalized_vectors_have_length_1_and_zeros_stay():
    vectors = ops.array([[3.0, -4.0], [0.0, 0.0], [1e-3, 0.0]])
    np.testing.assert_allclose(
        pooling_module.normalize(vectors),
        [[0.6, -0.8], [0.0, 0.0], [1.0, 0.0]],
        rtol=1e-6,
    )


def test_the_gradient_of_a_zero_vector_is_finite():
    import tensorflow as tf

    vectors = tf.Variable([[0.0, 0.0]])
    with tf.GradientTape() as tape:
        total = ops.sum(pooling_module.normalize(vectors))
    assert np.isfinite(tape.gradient(total, vectors)).all()
