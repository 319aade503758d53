"""Formulas of sublayers that combine several functions of `numerics`.

Most are islands, each of which XLA compiles as a whole.

Shape letters: B batch, F from-sequence, T to-sequence, H hidden, N heads, V vocabulary.
"""

from keras import ops

from bert_tf import islands
from bert_tf.modeling import numerics


def _moments_of_sum(x, residual, gamma, beta, keys, *, site, rate, epsilon):
    """Returns the moments of what `add_and_norm` normalizes: two float32 [rows, 1]."""
    total = numerics.dropout(x, rate, keys, site) + residual
    return numerics.moments(ops.cast(total, "float32"), epsilon)


def _add_and_norm_gradient(
    x, residual, gamma, beta, keys, *, upstream, kept, site, rate, epsilon
):
    """Returns the gradients of x, residual, gamma and beta."""
    mean, scale = kept
    total = numerics.dropout(x, rate, keys, site) + residual
    normalized = (ops.cast(total, "float32") - mean) * scale
    wide = ops.cast(upstream, "float32")
    scaled = wide * ops.cast(gamma, "float32")
    of_total = scale * (
        scaled
        - ops.mean(scaled, axis=-1, keepdims=True)
        - normalized * ops.mean(scaled * normalized, axis=-1, keepdims=True)
    )
    of_total = ops.cast(of_total, x.dtype)
    return (
        numerics.dropout(of_total, rate, keys, site),
        of_total,
        ops.cast(ops.sum(wide * normalized, axis=0), gamma.dtype),
        ops.cast(ops.sum(wide, axis=0), beta.dtype),
    )


@islands.island_with_gradient(_moments_of_sum, _add_and_norm_gradient)
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


def _log_sum_parts(scores, input_mask, keys, *, site, rate):
    """Returns `log_sum_parts` of the scores with their bias: two of [B, N, F, 1]."""
    wide = ops.cast(scores, "float32")
    return numerics.log_sum_parts(wide + numerics.attention_bias(input_mask))


def _dropped_attention_weights_gradient(
    scores, input_mask, keys, *, upstream, kept, site, rate
):
    """Returns the gradient of the scores."""
    highest, log_total = kept
    biased = ops.cast(scores, "float32") + numerics.attention_bias(input_mask)
    weights = ops.exp(biased - highest - log_total)
    of_weights = numerics.dropout(upstream, rate, keys, site)
    product = weights * ops.cast(of_weights, "float32")
    total = ops.sum(product, axis=-1, keepdims=True)
    return [ops.cast(product - weights * total, scores.dtype)]


@islands.island_with_gradient(_log_sum_parts, _dropped_attention_weights_gradient)
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


def affine(
    x: numerics.Tensor, kernel: numerics.Tensor, bias: numerics.Tensor
) -> numerics.Tensor:
    """Returns x @ kernel + bias, with an accurate gradient of the bias.

    In bfloat16 on CPUs, TensorFlow's own kernel sums over the rows in bfloat16. For
    4,096 rows, its relative error is 7 % if their signs are random, and more than one
    half if most signs are equal. A product with ones has float32 sums.

    Args:
        x: [rows, I].
        kernel: [I, O], the same dtype.
        bias: [O], the same dtype.

    Returns:
        [rows, O], the same dtype.
    """

    @ops.custom_gradient
    def plus_bias(y, bias):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return upstream, _sum_of_rows(upstream)

        # `ops.add` instead of `+`, so that TensorFlow adds the bias within the product.
        return ops.add(y, bias), gradient

    return plus_bias(ops.matmul(x, kernel), bias)


def _sum_of_rows(x):
    """Returns [n] of [rows, n]; sums in float32, rounded to the dtype of x."""
    num_rows = x.shape[0] or ops.shape(x)[0]  # A static size needs no operation.
    ones = ops.ones((1, num_rows), dtype=x.dtype)
    return ops.squeeze(ops.matmul(ones, x), axis=0)


def vocabulary_scores(
    vectors: numerics.Tensor, table: numerics.Tensor, bias: numerics.Tensor
) -> numerics.Tensor:
    """Returns vectors @ transposed table + bias, [rows, V], in the dtype of all three.

    The gradients are written out, because these are the largest products of a small
    model. TensorFlow would transpose the table's gradient in a pass of its own, and
    its kernel for the gradient of a bias is slower and less accurate (see `affine`).

    Args:
        vectors: [rows, H].
        table: [V, H], the same dtype.
        bias: [V], the same dtype.
    """

    @ops.custom_gradient
    def compute(vectors, table, bias):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return (
                ops.matmul(upstream, table),
                ops.matmul(ops.transpose(upstream), vectors),
                _sum_of_rows(upstream),
            )

        # `ops.add` instead of `+`, so that TensorFlow adds the bias within the product.
        return ops.add(ops.matmul(vectors, ops.transpose(table)), bias), gradient

    return compute(vectors, table, bias)
