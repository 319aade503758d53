"""Kernels in the forms that inference libraries recognize.

TensorFlow's graph optimizer and OpenVINO fuse several operations into one if they find
a formula exactly as it is usually written.
"""

import sys
from typing import Any

from keras import ops

from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import plain

Tensor = plain.Tensor


class Inference(cpu.Cpu):
    """Activations in their usual forms and, in bfloat16, what oneDNN fuses.

    oneDNN scales the scores and adds the mask as part of the matrix product. Softmax
    and layer normalization become one operation each, with float32 sums.

    Args:
        fuses_bfloat16: whether TensorFlow fuses operations in bfloat16 here, in a graph
            whose weights are constants. Without fusion, these formulas would round at
            every operation.
    """

    def __init__(self, *, fuses_bfloat16: bool = False):
        super().__init__()
        self._fuses_bfloat16 = fuses_bfloat16

    def dense(self, layer: Any, x: Tensor) -> Tensor:
        """See `Plain.dense`. A graph with constant weights has no gradient."""
        return layer(x) if self._is_fused(x) else super().dense(layer, x)

    def activation(self, name: str, x: Tensor) -> Tensor:
        """See `Plain.activation`; computed in the dtype of x."""
        if name == "gelu":
            return ops.gelu(x, approximate=True)
        if name == "gelu_erf":
            # Keras's `gelu` uses erfc, which OpenVINO does not recognize.
            return x * 0.5 * (1.0 + ops.erf(x * 0.5**0.5))
        return super().activation(name, x)

    def add_and_norm(
        self, x: Tensor, residual: Tensor, norm: Any, dropout: plain.Dropout | None
    ) -> Tensor:
        """See `Plain.add_and_norm`."""
        if dropout is not None or not self._is_fused(x):
            return super().add_and_norm(x, residual, norm, dropout)
        tf = _tensorflow()  # Keras's `mean` adds casts, which prevent fusion.
        total = x + residual
        gamma, beta = ops.cast(norm.gamma, x.dtype), ops.cast(norm.beta, x.dtype)
        mean = tf.reduce_mean(total, axis=[1], keepdims=True)
        square = tf.math.squared_difference(total, mean)
        variance = tf.reduce_mean(square, axis=[1], keepdims=True)
        factor = tf.math.rsqrt(variance + ops.cast(norm.epsilon, x.dtype)) * gamma
        return total * factor + (beta - mean * factor)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        sequences: plain.Sequences,
        *,
        num_heads: int,
        dropout: plain.Dropout | None,
    ) -> Tensor:
        """See `Plain.attend`."""
        if dropout is not None or not self._is_fused(query):
            return super().attend(
                query, key, value, sequences, num_heads=num_heads, dropout=dropout
            )
        query = plain.split_heads(query, sequences.num_queries, num_heads)
        key = plain.split_heads(key, sequences.length, num_heads)
        value = plain.split_heads(value, sequences.length, num_heads)
        # oneDNN transposes the keys within the product.
        scores = _tensorflow().matmul(query, key, transpose_b=True)  # [B, N, F, T]
        bias = ops.cast(numerics.attention_bias(sequences.visible), scores.dtype)
        scale = ops.cast(query.shape[-1] ** -0.5, scores.dtype)
        weights = ops.softmax(scores * scale + bias, axis=-1)
        return plain.merge_heads(ops.matmul(weights, value))

    def _is_fused(self, tensor):
        return self._fuses_bfloat16 and tensor.dtype == "bfloat16"


def _tensorflow():
    # Only code that has imported TensorFlow uses fused kernels.
    return sys.modules["tensorflow"]
