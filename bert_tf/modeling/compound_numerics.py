"""Formulas of sublayers that combine several functions of `numerics`.

XLA compiles normalization and attention weights where islands are compiled. Only there,
their gradients are written out: derived ones need several more passes over memory.

Shape letters: B batch, F from-sequence, T to-sequence, H hidden, N heads, V vocabulary.
"""

import keras
from keras import ops

from bert_tf import islands
from bert_tf.modeling import numerics


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
    if not islands.is_worth_compiling(x):
        total = _dropout_and_add(x, residual, keys, site=site, rate=rate)
        return ops.cast(numerics.layer_norm(total, gamma, beta, epsilon), x.dtype)

    settings = {"keys": keys, "site": site, "rate": float(rate)}

    @ops.custom_gradient
    def compute(x, residual, gamma, beta):
        outputs, total, mean, scale = _add_and_norm_parts(
            x, residual, gamma, beta, epsilon=epsilon, **settings
        )

        def gradient(upstream):
            of_x, of_total, of_gamma_by_row = _add_and_norm_gradient(
                total, upstream, gamma, mean=mean, scale=scale, **settings
            )
            of_gamma = _gradient_of_vector(of_gamma_by_row, gamma)
            return of_x, of_total, of_gamma, _gradient_of_vector(upstream, beta)

        return outputs, gradient

    return compute(x, residual, _as_tensor(gamma), _as_tensor(beta))


def _dropout_and_add(x, residual, keys, *, site, rate):
    if keys is None or rate == 0:
        return x + residual
    dropped = numerics.wide_dropout(x, rate, keys, site)
    return ops.cast(dropped + ops.cast(residual, dropped.dtype), x.dtype)


@islands.inner_island
def _add_and_norm_parts(x, residual, gamma, beta, *, keys, site, rate, epsilon):
    """Returns the result, the sum before normalization, and the sum's moments.

    XLA computes the moments once, although `layer_norm` asks for them too.
    """
    total = _dropout_and_add(x, residual, keys, site=site, rate=rate)
    mean, scale = numerics.moments(ops.cast(total, "float32"), epsilon)
    outputs = numerics.layer_norm(total, gamma, beta, epsilon)
    return ops.cast(outputs, x.dtype), total, mean, scale


@islands.inner_island
def _add_and_norm_gradient(total, upstream, gamma, *, mean, scale, keys, site, rate):
    """Returns the gradients of x and residual, and what each row adds to gamma's."""
    of_total, of_gamma_by_row = _norm_gradient(
        total, upstream, gamma, mean=mean, scale=scale
    )
    of_total = ops.cast(of_total, upstream.dtype)
    return numerics.dropout(of_total, rate, keys, site), of_total, of_gamma_by_row


def _norm_gradient(x, upstream, gamma, *, mean, scale):
    """Returns the float32 gradient of x, and what each row adds to gamma's gradient."""
    normalized = (ops.cast(x, "float32") - mean) * scale
    wide = ops.cast(upstream, "float32")
    # XLA writes these rows to memory once. It reads them again below, so that their
    # rounding counts in both places. In float16, they could overflow.
    is_bfloat16 = keras.backend.standardize_dtype(upstream.dtype) == "bfloat16"
    of_gamma_by_row = ops.cast(
        wide * normalized, "bfloat16" if is_bfloat16 else "float32"
    )
    gamma = ops.cast(gamma, "float32")
    scaled = wide * gamma
    mean_scaled = islands.reduce_rows(ops.mean, scaled)
    product = ops.cast(of_gamma_by_row, "float32") * gamma
    mean_product = islands.reduce_rows(ops.mean, product)
    return scale * (scaled - mean_scaled - normalized * mean_product), of_gamma_by_row


def _as_tensor(vector):
    """Returns a variable's value: eager custom gradients refuse variables."""
    return ops.reshape(vector, (-1,))


def _gradient_of_vector(rows, vector):
    """Returns the sum of rows in the dtype of gamma or beta."""
    return ops.cast(_sum_of_rows(rows), vector.dtype)


def norm_and_dropout(
    x: numerics.Tensor,
    gamma: numerics.Tensor,
    beta: numerics.Tensor,
    keys: numerics.Tensor | None,
    *,
    site: int,
    rate: float,
    epsilon: float,
    dtype: str,
) -> numerics.Tensor:
    """Returns dropout(LayerNorm(x)) as `dtype`.

    Args:
        x: float32 [rows, H].
        gamma, beta, epsilon: those of `layer_norm`.
        keys, site, rate: those of `dropout`.
        dtype: of the result.
    """
    if not islands.is_worth_compiling(x):
        outputs = ops.cast(numerics.layer_norm(x, gamma, beta, epsilon), dtype)
        return numerics.dropout(outputs, rate, keys, site)
    settings = {"keys": keys, "site": site, "rate": float(rate)}

    @ops.custom_gradient
    def compute(x, gamma, beta):
        outputs, mean, scale = _norm_and_dropout_parts(
            x, gamma, beta, epsilon=epsilon, dtype=dtype, **settings
        )

        def gradient(upstream):
            of_x, of_gamma_by_row, of_beta_by_row = _norm_and_dropout_gradient(
                x, upstream, gamma, mean=mean, scale=scale, **settings
            )
            of_gamma = _gradient_of_vector(of_gamma_by_row, gamma)
            return of_x, of_gamma, _gradient_of_vector(of_beta_by_row, beta)

        return outputs, gradient

    return compute(x, _as_tensor(gamma), _as_tensor(beta))


@islands.inner_island
def _norm_and_dropout_parts(x, gamma, beta, *, keys, site, rate, epsilon, dtype):
    """Returns the result and the moments of x."""
    mean, scale = numerics.moments(x, epsilon)
    outputs = ops.cast(numerics.layer_norm(x, gamma, beta, epsilon), dtype)
    return numerics.dropout(outputs, rate, keys, site), mean, scale


@islands.inner_island
def _norm_and_dropout_gradient(x, upstream, gamma, *, mean, scale, keys, site, rate):
    """Returns the gradient of x, and what each row adds to gamma's and beta's."""
    of_beta_by_row = numerics.dropout(upstream, rate, keys, site)
    of_x, of_gamma_by_row = _norm_gradient(
        x, of_beta_by_row, gamma, mean=mean, scale=scale
    )
    return of_x, of_gamma_by_row, of_beta_by_row


def masked_softmax(
    scores: numerics.Tensor, input_mask: numerics.Tensor
) -> numerics.Tensor:
    """Returns the attention weights, float32 [B, N, F, T].

    Args:
        scores: [B, N, F, T].
        input_mask: that of `attention_bias`.
    """
    return numerics.softmax(_with_bias(scores, input_mask))


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
    if not islands.is_worth_compiling(scores):
        weights = ops.cast(masked_softmax(scores, input_mask), scores.dtype)
        return numerics.dropout(weights, rate, keys, site)

    settings = {"keys": keys, "site": site, "rate": float(rate)}

    @ops.custom_gradient
    def compute(scores):
        dropped, highest, total = _attention_weights_parts(
            scores, input_mask, **settings
        )

        def gradient(upstream):
            return _attention_weights_gradient(
                scores, input_mask, upstream, highest=highest, total=total, **settings
            )

        return dropped, gradient

    return compute(scores)


def _with_bias(scores, input_mask):
    return ops.cast(scores, "float32") + numerics.attention_bias(input_mask)


@islands.inner_island
def _attention_weights_parts(scores, input_mask, *, keys, site, rate):
    """Returns the weights after dropout, and two numbers of each softmax.

    These are float32 [B, N, F, 1]: the largest score, and the sum of the exponentials
    of the differences from it.
    """
    biased = _with_bias(scores, input_mask)
    highest = islands.reduce_rows(ops.max, biased)
    exponentials = ops.exp(biased - highest)
    total = islands.reduce_rows(ops.sum, exponentials)
    weights = numerics.wide_dropout(exponentials * (1 / total), rate, keys, site)
    return ops.cast(weights, scores.dtype), highest, total


@islands.inner_island
def _attention_weights_gradient(
    scores, input_mask, upstream, *, highest, total, keys, site, rate
):
    """Returns the gradient of the scores."""
    weights = ops.exp(_with_bias(scores, input_mask) - highest) * (1 / total)
    product = weights * ops.cast(
        numerics.wide_dropout(upstream, rate, keys, site), "float32"
    )
    sum_of_product = islands.reduce_rows(ops.sum, product)
    return ops.cast(product - weights * sum_of_product, scores.dtype)


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
