"""Islands: chains of element-wise operations that XLA compiles into one loop.

TensorFlow runs every element-wise operation as a separate pass over memory. On
processors with fast matrix units, these passes take longer than the matrix products.
XLA fuses them, but on a CPU its own matrix products are slower than TensorFlow's. So a
training step on a CPU compiles only the chains between the products, each as one
function:

    @inner_island
    def scaled_sum(x, y, *, scale):
        return x + scale * y

`add_and_norm` and `dropped_weights` are what `cpu.Cpu` computes in islands with
gradients that are written out, because derived ones would need several more passes over
memory. Sums over rows (the gradients of biases, gamma and beta) have no fast form in an
island, so they are products with a vector of ones.
"""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import plain

Tensor = plain.Tensor
Dropout = plain.Dropout

# See `reduce_rows`. XLA splits longer reductions itself (`tree_reduction_rewriter`).
# A vector of 256 bits has 8 float32, so lanes are multiples of 8. Eight lanes were
# slower than 16 (H = 256), and more than 32 would leave much for the second stage.
_MAX_TERMS = 32
_LANES = (16, 24, 32)


def island(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Returns a function of one tensor that XLA compiles as a whole.

    The backward pass is compiled too. It computes the function again, so that nothing
    but its argument is kept between the passes.
    """
    forward = inner_island(function)

    @inner_island
    def backward(x, upstream):
        with _tensorflow().GradientTape() as tape:
            tape.watch(x)
            output = function(x)
        return tape.gradient(output, x, output_gradients=upstream)

    @ops.custom_gradient
    def compute(x):
        return forward(x), lambda upstream: backward(x, upstream)

    return compute


def inner_island(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `island` for a part of a function whose gradient is written out.

    Args:
        function: from tensors to a tensor or a tuple of tensors, without other effects.
            Anything else among its arguments is fixed when compiling.
    """

    @functools.cache
    def compiled():
        return _tensorflow().function(function, jit_compile=True, autograph=False)

    return lambda *arguments, **settings: compiled()(*arguments, **settings)


def reduce_rows(
    reduce: Callable[..., Any],
    x: Any,
    function: Callable[[Any], Any] = lambda columns: columns,
) -> Any:
    """Returns `reduce(function(x), axis=-1, keepdims=True)`.

    On a CPU, XLA writes `function(x)` to memory before it reduces rows of more than
    `_MAX_TERMS` values. Shorter reductions compute the function as they go. Rows of
    most lengths are therefore reduced in two stages.

    Args:
        reduce: `keras.ops.sum`, `max` or `mean`. The maximum may ignore NaN.
        x: float [..., n].
        function: element-wise. It is called for some of the columns of x at a time.
    """
    parts = _parts_of_rows(x.shape[-1])
    end = math.prod(parts)
    has_rest = end != x.shape[-1]
    if not parts or (has_rest and reduce is ops.mean):
        return reduce(function(x), axis=-1, keepdims=True)
    first = function(x[..., :end] if has_rest else x)
    # XLA's reductions in bfloat16 are slow on a CPU.
    head = ops.reshape(ops.cast(first, "float32"), (*ops.shape(x)[:-1], *parts))
    # Without an operation between them, XLA would merge the two stages.
    partial = ops.maximum(reduce(head, axis=-2), -math.inf)
    result = ops.expand_dims(reduce(partial, axis=(-2, -1)), -1)
    if has_rest:
        rest = ops.cast(function(x[..., end:]), "float32")
        rest = reduce(rest, axis=-1, keepdims=True)
        both = ops.concatenate([result, rest], axis=-1)
        result = reduce(both, axis=-1, keepdims=True)
    return ops.cast(result, first.dtype)


def _parts_of_rows(num_columns):
    """Returns (blocks, terms, lanes) of the first stage, or () for a single stage.

    Their product is at most the number of columns, and at least two thirds of it. The
    lanes are reduced side by side, by vector instructions.
    """
    if num_columns is None or num_columns <= _MAX_TERMS:
        return ()
    for lanes in _LANES:
        if num_columns % lanes == 0 and num_columns // lanes <= _MAX_TERMS:
            return 1, num_columns // lanes, lanes
    num_blocks = num_columns // (_MAX_TERMS * _LANES[0])
    return (num_blocks, _MAX_TERMS, _LANES[0]) if num_blocks > 1 else ()


_mean_of_rows = functools.partial(reduce_rows, ops.mean)


def add_and_norm(
    x: Tensor, residual: Tensor, norm: Any, dropout: Dropout | None
) -> Tensor:
    """Returns what `Plain.add_and_norm` does.

    The backward pass keeps the sum that is normalized, instead of x.
    """
    dropout = _at_any_site(dropout)

    @ops.custom_gradient
    def compute(x, residual, gamma, beta):
        outputs, total, mean, scale = _add_and_norm(
            x, residual, gamma, beta, dropout, epsilon=norm.epsilon
        )

        def gradient(upstream):
            of_x, of_total, of_gamma_by_row = _add_and_norm_gradient(
                total, upstream, gamma, dropout, mean=mean, scale=scale
            )
            of_gamma = _gradient_of_vector(of_gamma_by_row, gamma)
            return of_x, of_total, of_gamma, _gradient_of_vector(upstream, beta)

        return outputs, gradient

    return compute(x, residual, _value(norm.gamma), _value(norm.beta))


@inner_island
def _add_and_norm(x, residual, gamma, beta, dropout, *, epsilon):
    """Returns the result, the sum before normalization, and the sum's moments.

    XLA computes the moments once, although `layer_norm` asks for them too.
    """
    total = plain.residual_sum(x, residual, dropout)
    wide = ops.cast(total, "float32")
    mean, scale = plain.moments(wide, epsilon, mean=_mean_of_rows)
    outputs = plain.layer_norm(total, gamma, beta, epsilon, mean=_mean_of_rows)
    return ops.cast(outputs, x.dtype), total, mean, scale


@inner_island
def _add_and_norm_gradient(total, upstream, gamma, dropout, *, mean, scale):
    """Returns the gradients of x and residual, and what each row adds to gamma's."""
    normalized = (ops.cast(total, "float32") - mean) * scale
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
    of_total = scale * (scaled - mean_scaled - normalized * mean_product)
    of_total = ops.cast(of_total, upstream.dtype)
    return dropout_masks.applied(of_total, dropout), of_total, of_gamma_by_row


def dropped_weights(scores: Tensor, visible: Tensor, dropout: Dropout | None) -> Tensor:
    """Returns the attention weights after dropout, in the dtype of the scores.

    Args:
        scores: [B, N, F, T].
        visible: see `plain.Sequences`.
        dropout: of the weights.
    """
    dropout = _at_any_site(dropout)

    @ops.custom_gradient
    def compute(scores):
        dropped, highest, total = _dropped_weights(scores, visible, dropout)

        def gradient(upstream):
            return _dropped_weights_gradient(
                scores, visible, dropout, upstream, highest=highest, total=total
            )

        return dropped, gradient

    return compute(scores)


def with_bias(scores: Tensor, visible: Tensor) -> Tensor:
    """Returns attention scores with the bias of positions that are not seen."""
    return ops.cast(scores, "float32") + numerics.attention_bias(visible)


@inner_island
def _dropped_weights(scores, visible, dropout):
    """Returns the weights after dropout, and two numbers of each softmax.

    These are float32 [B, N, F, 1]: the largest score, and the sum of the exponentials
    of the differences from it.
    """
    biased = with_bias(scores, visible)
    highest = reduce_rows(ops.max, biased)
    exponentials = ops.exp(biased - highest)
    total = reduce_rows(ops.sum, exponentials)
    weights = dropout_masks.applied(exponentials * (1 / total), dropout)
    return ops.cast(weights, scores.dtype), highest, total


@inner_island
def _dropped_weights_gradient(scores, visible, dropout, upstream, *, highest, total):
    """Returns the gradient of the scores."""
    weights = ops.exp(with_bias(scores, visible) - highest) * (1 / total)
    upstream = dropout_masks.applied(ops.cast(upstream, "float32"), dropout)
    product = weights * upstream
    sum_of_product = reduce_rows(ops.sum, product)
    return ops.cast(product - weights * sum_of_product, scores.dtype)


def _at_any_site(dropout):
    """Returns a dropout whose site is a tensor, so that all layers share an island."""
    if dropout is None:
        return None
    return dropout._replace(site=ops.convert_to_tensor(dropout.site, dtype="int32"))


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


def _tensorflow():
    # Only code that has imported TensorFlow asks for compiled islands.
    return sys.modules["tensorflow"]
