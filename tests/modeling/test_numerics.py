"""Constants and formulas of the release that have one form."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import numerics


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "gelu_pytorch_tanh"])
def test_all_names_of_the_tanh_form_are_one_activation(name):
    assert numerics.activation(name) == "gelu"
    assert numerics.activation("gelu_erf") == "gelu_erf"


def test_softmax_of_low_precision_is_computed_in_float32():
    computed = numerics.softmax(keras.ops.convert_to_tensor([[0.0, 9.0]], "bfloat16"))
    assert computed.dtype == tf.float32
    np.testing.assert_allclose(computed[0, 0], 1 / (1 + math.exp(9)), rtol=1e-6)


def test_attention_may_look_where_the_mask_is_1():
    bias = numerics.attention_bias(np.array([[1, 0]], "int32"))
    np.testing.assert_array_equal(bias, [[[[0.0, -10000.0]]]])


def test_the_gradient_of_a_lookup_is_dense():
    table = tf.Variable(np.eye(4, 3, dtype="float32"))
    with tf.GradientTape() as tape:
        rows = numerics.lookup(table, tf.constant([2, 0, 2]))
    np.testing.assert_array_equal(rows, np.eye(4, 3)[[2, 0, 2]])
    gradient = tape.gradient(rows, table)
    assert isinstance(gradient, tf.Tensor)
    np.testing.assert_array_equal(gradient[:, 0], [1, 0, 2, 0])
