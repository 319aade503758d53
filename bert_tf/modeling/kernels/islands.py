"""Islands: chains of element-wise operations that XLA compiles into one loop.

TensorFlow runs every element-wise operation as a separate pass over memory. On
processors with fast matrix units, these passes take longer than the matrix products.
XLA fuses them, but on a CPU its own matrix products are slower than TensorFlow's. So a
training step on a CPU compiles only the chains between the products, each as one
function:

    @islands.island
    def scaled_sum(x, y, *, scale):
        return x + scale * y
"""

import dataclasses
import functools
import math
import sys
from collections.abc import Callable
from typing import Any

from keras import ops

# See `reduce_rows`. XLA splits longer reductions itself (`tree_reduction_rewriter`).
# A vector of 256 bits has 8 float32, so lanes are multiples of 8. Eight lanes were
# slower than 16 (H = 256), and more than 32 would leave much for the second stage.
_MAX_TERMS = 32
_LANES = (16, 24, 32)


def island(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that XLA compiles as a whole. Needs TensorFlow.

    The backward pass is compiled too. It computes the function again, so that nothing
    but its arguments is kept between the passes.

    Args:
        function: from tensors to a tensor, without other effects. Integers become
            tensors, so that layers with different numbers share what is compiled.
            None and other keywords are fixed when compiling.
    """
    return _Island(function=function).decorated()


def inner_island(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `island` for a part of a function whose gradient is written out.

    Args:
        function: as for `island`, but it may return a tuple of tensors.
    """
    return _Island(function=function, has_gradient=False).decorated()


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


def compile_whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of tensors that XLA compiles as a whole, without gradient."""
    return _tensorflow().function(function, jit_compile=True, autograph=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Island:
    """A function, and whether its gradient is derived from it."""

    function: Callable[..., Any]
    has_gradient: bool = True

    def decorated(self):
        """Returns the compiled function."""

        def call(*arguments, **settings):
            values: dict[int | str, Any] = dict(enumerate(arguments))
            values |= {name: x for name, x in settings.items() if _becomes_tensor(x)}
            places = tuple(place for place, x in values.items() if x is not None)
            tensors = [values[place] for place in places]
            fixed = (item for item in settings.items() if item[0] not in values)
            compute = _compiled_island(
                self, len(arguments), places, tuple(sorted(fixed))
            )
            return compute(*map(_tensorflow().convert_to_tensor, tensors))

        return call


@functools.cache
def _compiled_island(definition, num_arguments, places, settings):
    """Returns the compiled function, which keeps its compiled backward pass."""
    tf = _tensorflow()

    def compute(*tensors):
        values = dict(zip(places, tensors, strict=True))
        arguments = [values.pop(place, None) for place in range(num_arguments)]
        return definition.function(*arguments, **values, **dict(settings))

    def differentiate(upstream, *tensors):
        floats = [tensor for tensor in tensors if tensor.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            output = compute(*tensors)
        return tape.gradient(output, floats, output_gradients=upstream)

    forward = compile_whole(compute)
    if not definition.has_gradient:
        return forward
    backward = compile_whole(differentiate)

    @tf.custom_gradient
    def call(*tensors):
        def gradient(upstream):
            floats = [i for i, x in enumerate(tensors) if x.dtype.is_floating]
            gradients = dict(zip(floats, backward(upstream, *tensors), strict=True))
            return [gradients.get(index) for index in range(len(tensors))]

        return forward(*tensors), gradient

    return call


def _becomes_tensor(value):
    return isinstance(value, int) or hasattr(value, "shape")


def _tensorflow():
    # Only code that has imported TensorFlow asks for compiled islands.
    return sys.modules["tensorflow"]
