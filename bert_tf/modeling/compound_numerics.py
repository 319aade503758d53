"""Sublayer formulas made of several of `numerics`, which islands compile as a whole.

Shape letters: B batch, F from-sequence, T to-sequence, H hidden, N heads, V vocabulary.
"""

from keras import ops

from bert_tf import islands
from bert_tf.modeling import numerics


@islands.island
def add_and_norm(
    x: numerics.Tensor,
    residual: numerics.Tensor,
    gamma: numerics.Tensor,
    beta: numerics.Tensor,
    keys: numerics.Tensor | None,
    *,
    site: int,
    rate: float,
    epsilon: float,
) -> numerics.Tensor:
    """Returns LayerNorm(residual + dropout(x)), in the dtype of x.

    Args:
        x: [rows, H], a sublayer's result.
        residual: [rows, H], the sublayer's input.
        gamma, beta, epsilon: those of `layer_norm`.
        keys, site, rate: those of `dropout`.
    """
    total = numerics.dropout(x, rate, keys, site) + residual
    return ops.cast(numerics.layer_norm(total, gamma, beta, epsilon), x.dtype)


def masked_softmax(
    scores: numerics.Tensor, input_mask: numerics.Tensor
) -> numerics.Tensor:
    """Returns the attention weights, float32 [B, N, F, T].

    Args:
        scores: [B, N, F, T].
        input_mask: that of `attention_bias`.
    """
    return numerics.softmax(
        ops.cast(scores, "float32") + numerics.attention_bias(input_mask)
    )


@islands.island
def dropped_attention_weights(
    scores: numerics.Tensor,
    input_mask: numerics.Tensor,
    keys: numerics.Tensor | None,
    *,
    site: int,
    rate: float,
) -> numerics.Tensor:
    """Returns the attention weights after dropout, in the dtype of the scores.

    Args:
        scores, input_mask: those of `masked_softmax`.
        keys, site, rate: those of `dropout`.
    """
    weights = ops.cast(masked_softmax(scores, input_mask), scores.dtype)
    return numerics.dropout(weights, rate, keys, site)


def vocabulary_scores(
    vectors: numerics.Tensor, table: numerics.Tensor, bias: numerics.Tensor
) -> numerics.Tensor:
    """Returns vectors @ transposed table + bias, [rows, V], in the dtype of all three.

    The gradients are written out, because these are the largest products of a small
    model. TensorFlow would transpose the table's gradient in a pass of its own, and
    its kernel for the gradient of a bias is slower than a product with ones.

    Args:
        vectors: [rows, H].
        table: [V, H], the same dtype.
        bias: [V], the same dtype.
    """

    @ops.custom_gradient
    def compute(vectors, table, bias):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            ones = ops.ones_like(vectors[:, :1])  # [rows, 1]
            return (
                ops.matmul(upstream, table),
                ops.matmul(ops.transpose(upstream), vectors),
                ops.matmul(ops.transpose(ones), upstream)[0],
            )

        # `ops.add` instead of `+`, so that TensorFlow adds the bias within the product.
        return ops.add(ops.matmul(vectors, ops.transpose(table)), bias), gradient

    return compute(vectors, table, bias)
