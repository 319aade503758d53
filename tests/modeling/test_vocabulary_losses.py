"""Losses of many rows, computed in parts, against all of them at once."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import numerics
from bert_tf.modeling import vocabulary_losses

RNG = np.random.default_rng(7)
VECTORS = RNG.normal(size=(7, 4)).astype("float32")
TABLE = RNG.normal(size=(11, 4)).astype("float32")
BIAS = RNG.normal(size=11).astype("float32")
LOGITS = VECTORS @ TABLE.T + BIAS
LABELS = np.array([0, 10, 3, 3, 5, 7, 1], "int32")
WEIGHTS = np.array([1.0, 0.0, 2.0, 1.0, 0.5, 0.0, 1.0], "float32")


def weighted(compute, *inputs):
    """Returns the losses and the gradients of their weighted sum."""
    inputs = [tf.convert_to_tensor(values) for values in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        losses = compute(*inputs)
        total = tf.reduce_sum(losses * WEIGHTS)
    return losses, tape.gradient(total, inputs)


def at_once(vectors, table, bias):
    logits = vectors @ tf.transpose(table) + bias
    return tf.nn.sparse_softmax_cross_entropy_with_logits(LABELS, logits)


# A part is smaller than the rows, divides them, or is larger.
@pytest.mark.parametrize("rows", [2, 3, 7, 50])
@pytest.mark.parametrize("how", ["eager", "graph", "xla"])
def test_losses_and_gradients_are_those_of_all_rows_at_once(rows, how):
    def in_parts(vectors, table, bias):
        return vocabulary_losses.losses(vectors, table, bias, LABELS, chunk_size=rows)

    def compute(*inputs):
        return weighted(in_parts, *inputs)

    if how != "eager":
        compute = tf.function(compute, jit_compile=how == "xla")
    losses, gradients = compute(VECTORS, TABLE, BIAS)
    expected, expected_gradients = weighted(at_once, VECTORS, TABLE, BIAS)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for gradient, of_all in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, of_all, atol=1e-5)


def test_hits_are_rows_whose_highest_logit_is_the_labels():
    for labels, hit in [(LOGITS.argmax(axis=1), 1.0), (LOGITS.argmin(axis=1), 0.0)]:
        hits = vocabulary_losses.hits(
            tf.constant(VECTORS), TABLE, BIAS, labels.astype("int32")
        )
        assert hits.numpy().tolist() == [hit] * 7


def test_the_number_of_rows_may_be_unknown_to_the_graph():
    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def total(vectors):
        labels = tf.zeros(tf.shape(vectors)[:1], "int32")
        losses = vocabulary_losses.losses(vectors, TABLE, BIAS, labels, chunk_size=2)
        return tf.reduce_sum(losses)

    expected = numerics.cross_entropy(LOGITS, np.zeros(7, "int32"))
    np.testing.assert_allclose(total(VECTORS), np.sum(expected), rtol=1e-5)


def test_bfloat16_vectors_have_float32_losses_and_bfloat16_gradients():
    inputs = [tf.cast(tensor, "bfloat16") for tensor in (VECTORS, TABLE, BIAS)]

    def in_parts(*inputs):
        return vocabulary_losses.losses(*inputs, LABELS)

    losses, gradients = weighted(in_parts, *inputs)
    assert losses.dtype == tf.float32
    assert {gradient.dtype for gradient in gradients} == {tf.bfloat16}
    np.testing.assert_allclose(losses, at_once(VECTORS, TABLE, BIAS), atol=0.1)
