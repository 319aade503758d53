"""What `cpu.Cpu` computes in islands, with gradients that are written out.

Derived gradients would need several more passes over memory. Sums over rows (the
gradients of biases, gamma and beta) have no fast form in an island, so they are
products with a vector of ones.
"""

import functools
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import islands
from bert_tf.modeling.kernels import plain

Tensor = plain.Tensor
_mean_of_rows = functools.partial(islands.reduce_rows, ops.mean)


def add_and_norm(
    x: Tensor, residual: Tensor, norm: Any, dropout: plain.Dropout | None
) -> Tensor:
    """Returns what `Plain.add_and_norm` does.

    The backward pass keeps the sum that is normalized, instead of x.
    """
    settings = _settings(dropout)

    @ops.custom_gradient
    def compute(x, residual, gamma, beta):
        outputs, total, mean, scale = _add_and_norm(
            x, residual, gamma, beta, epsilon=norm.epsilon, **settings
        )

        def gradient(upstream):
            of_x, of_total, of_gamma_by_row = _add_and_norm_gradient(
                total, upstream, gamma, mean=mean, scale=scale, **settings
            )
            of_gamma = _gradient_of_vector(of_gamma_by_row, gamma)
            return of_x, of_total, of_gamma, _gradient_of_vector(upstream, beta)

        return outputs, gradient

    return compute(x, residual, _value(norm.gamma), _value(norm.beta))


@islands.inner_island
def _add_and_norm(x, residual, gamma, beta, *, keys, site, rate, epsilon):
    """Returns the result, the sum before normalization, and the sum's moments.

    XLA computes the moments once, although `layer_norm` asks for them too.
    """
    total = plain.residual_sum(x, residual, dropout_masks.at(keys, site, rate))
    wide = ops.cast(total, "float32")
    mean, scale = plain.moments(wide, epsilon, mean=_mean_of_rows)
    outputs = plain.layer_norm(total, gamma, beta, epsilon, mean=_mean_of_rows)
    return ops.cast(outputs, x.dtype), total, mean, scale


@islands.inner_island
def _add_and_norm_gradient(total, upstream, gamma, *, mean, scale, keys, site, rate):
    """Returns the gradients of x and residual, and what each row adds to gamma's."""
    of_total, of_gamma_by_row = _norm_gradient(
        total, upstream, gamma, mean=mean, scale=scale
    )
    of_total = ops.cast(of_total, upstream.dtype)
    return _dropped(of_total, keys, site, rate), of_total, of_gamma_by_row


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
    mean_scaled = _mean_of_rows(scaled)
    mean_product = _mean_of_rows(ops.cast(of_gamma_by_row, "float32") * gamma)
    return scale * (scaled - mean_scaled - normalized * mean_product), of_gamma_by_row


def dropped_weights(
    scores: Tensor, visible: Tensor, dropout: plain.Dropout | None
) -> Tensor:
    """Returns the attention weights after dropout, in the dtype of the scores.

    Args:
        scores: [B, N, F, T].
        visible: see `plain.Sequences`.
        dropout: of the weights.
    """
    settings = _settings(dropout)

    @ops.custom_gradient
    def compute(scores):
        dropped, highest, total = _dropped_weights(scores, visible, **settings)

        def gradient(upstream):
            return _dropped_weights_gradient(
                scores, visible, upstream, highest=highest, total=total, **settings
            )

        return dropped, gradient

    return compute(scores)


def with_bias(scores: Tensor, visible: Tensor) -> Tensor:
    """Returns attention scores with the bias of positions that are not seen."""
    return ops.cast(scores, "float32") + numerics.attention_bias(visible)


@islands.inner_island
def _dropped_weights(scores, visible, *, keys, site, rate):
    """Returns the weights after dropout, and two numbers of each softmax.

    These are float32 [B, N, F, 1]: the largest score, and the sum of the exponentials
    of the differences from it.
    """
    biased = with_bias(scores, visible)
    highest = islands.reduce_rows(ops.max, biased)
    exponentials = ops.exp(biased - highest)
    total = islands.reduce_rows(ops.sum, exponentials)
    weights = _dropped(exponentials * (1 / total), keys, site, rate)
    return ops.cast(weights, scores.dtype), highest, total


@islands.inner_island
def _dropped_weights_gradient(
    scores, visible, upstream, *, highest, total, keys, site, rate
):
    """Returns the gradient of the scores."""
    weights = ops.exp(with_bias(scores, visible) - highest) * (1 / total)
    product = weights * _dropped(ops.cast(upstream, "float32"), keys, site, rate)
    sum_of_product = islands.reduce_rows(ops.sum, product)
    return ops.cast(product - weights * sum_of_product, scores.dtype)


def _settings(dropout):
    """Returns a `Dropout` as the arguments of an island."""
    if dropout is None:
        return {"keys": None, "site": 0, "rate": 0.0}
    return {"keys": dropout.keys, "site": dropout.site, "rate": dropout.rate}


def _dropped(x, keys, site, rate):
    return dropout_masks.applied(x, dropout_masks.at(keys, site, rate))


def _value(vector):
    """Returns a variable's value: eager custom gradients refuse variables."""
    return ops.reshape(vector, (-1,))


def _gradient_of_vector(rows, vector):
    """Returns the sum of rows in the dtype of gamma or beta."""
    return ops.cast(sum_of_rows(rows), vector.dtype)


def sum_of_rows(x: Tensor) -> Tensor:
    """Returns [n] of [rows, n]; sums in float32, rounded to the dtype of x."""
    num_rows = x.shape[0] or ops.shape(x)[0]  # A static size needs no operation.
    ones = ops.ones((1, num_rows), dtype=x.dtype)
    return ops.squeeze(ops.matmul(ones, x), axis=0)
