"""Formulas in the forms that inference libraries recognize.

TensorFlow's graph optimizer and OpenVINO fuse several operations into one if they find
a formula exactly as it is usually written. `numerics` has faster forms for training.

Shape letters: B batch, F from-sequence, T to-sequence, H hidden, N heads, D = H / N.
"""

import contextlib
import contextvars
import sys
from collections.abc import Iterator
from typing import Any

from keras import ops

from bert_tf.modeling import numerics

_is_constant_graph = contextvars.ContextVar("is_constant_graph", default=False)


@contextlib.contextmanager
def constant_graph(fuses: bool) -> Iterator[None]:
    """Marks the code of a TensorFlow graph whose weights are constants.

    In bfloat16, layers then use `attention_weights` and `add_and_norm` for inference.
    oneDNN then scales the scores and adds the mask as part of the matrix product.
    Softmax and layer normalization become one operation each, with float32 sums.

    Args:
        fuses: whether TensorFlow fuses operations in bfloat16 here; False changes
            nothing. Without fusion, these formulas would round at every operation.
    """
    token = _is_constant_graph.set(fuses)
    try:
        yield
    finally:
        _is_constant_graph.reset(token)


def is_fused(tensor: numerics.Tensor) -> bool:
    """Returns whether TensorFlow fuses the formulas below for a tensor's dtype here."""
    return _is_constant_graph.get() and tensor.dtype == "bfloat16"


def attention_weights(
    query: numerics.Tensor,
    key: numerics.Tensor,
    input_mask: numerics.Tensor,
    scale: float,
) -> numerics.Tensor:
    """Returns the attention weights [B, N, F, T], in the dtype of query and key.

    Args:
        query: [B, N, F, D].
        key: [B, N, T, D], which oneDNN transposes within the product.
        input_mask: that of `numerics.attention_bias`.
        scale: factor of the scores.
    """
    scores = _tensorflow().matmul(query, key, transpose_b=True)  # [B, N, F, T]
    bias = ops.cast(numerics.attention_bias(input_mask), scores.dtype)
    return ops.softmax(scores * ops.cast(scale, scores.dtype) + bias, axis=-1)


def add_and_norm(
    x: numerics.Tensor,
    residual: numerics.Tensor,
    gamma: numerics.Tensor,
    beta: numerics.Tensor,
    epsilon: float,
) -> numerics.Tensor:
    """Returns LayerNorm(residual + x), in the dtype of x.

    Args:
        x, residual, gamma, beta, epsilon: those of `compound_numerics.add_and_norm`.
    """
    tf = _tensorflow()  # Keras's `mean` adds casts, which prevent fusion.
    total = x + residual
    gamma, beta = ops.cast(gamma, x.dtype), ops.cast(beta, x.dtype)
    mean = tf.reduce_mean(total, axis=[1], keepdims=True)
    square = tf.math.squared_difference(total, mean)
    variance = tf.reduce_mean(square, axis=[1], keepdims=True)
    factor = tf.math.rsqrt(variance + ops.cast(epsilon, x.dtype)) * gamma
    return total * factor + (beta - mean * factor)


def _gelu(x: numerics.Tensor) -> numerics.Tensor:
    return ops.gelu(x, approximate=True)


def _gelu_erf(x: numerics.Tensor) -> numerics.Tensor:
    # Keras's `gelu` uses erfc, which OpenVINO does not recognize.
    return x * 0.5 * (1.0 + ops.erf(x * 0.5**0.5))


_FORMS = {numerics.gelu: _gelu, numerics.gelu_erf: _gelu_erf}


def use_fusible_activations(model: Any) -> None:
    """Changes the activations of a built model's encoder to their usual forms.

    The results differ by rounding only.

    Args:
        model: a `BertModel`, or a task's model.
    """
    encoder = getattr(model, "bert", model).encoder
    for layer in encoder.encoder_layers:
        activation = layer.intermediate.activation
        layer.intermediate.activation = _FORMS.get(activation, activation)


def _tensorflow():
    # Only code that has imported TensorFlow marks constant graphs.
    return sys.modules["tensorflow"]
