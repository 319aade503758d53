"""TensorFlow ops for `pairs`, and random numbers that depend on their place in a graph.

Nothing is stateful. A dataset that starts in the middle therefore makes the same draws
as one that started at the beginning, on any worker.
"""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

_TWO_TO_THE_MINUS_53 = 2.0**-53
_DTYPES = {int: tf.int64, bool: tf.bool}


class GraphArrays:
    """As `draws.Arrays`, with TensorFlow ops."""

    take = staticmethod(tf.gather)
    where = staticmethod(tf.where)
    minimum = staticmethod(tf.minimum)
    maximum = staticmethod(tf.maximum)
    clip = staticmethod(tf.clip_by_value)
    cumsum = staticmethod(tf.cumsum)
    repeat = staticmethod(tf.repeat)
    arange = staticmethod(tf.range)
    zeros_like = staticmethod(tf.zeros_like)
    concat = staticmethod(functools.partial(tf.concat, axis=0))
    search = staticmethod(functools.partial(tf.searchsorted, out_type=tf.int64))
    size = staticmethod(functools.partial(tf.size, out_type=tf.int64))

    @staticmethod
    def full_like(values: tf.Tensor, number: Any) -> tf.Tensor:
        """Returns int64 values that are all equal."""
        return tf.fill(tf.shape(values), tf.cast(number, tf.int64))

    @staticmethod
    def passes(document_starts: tf.Tensor, dupe_factor: int) -> list[tf.Tensor]:
        """Returns the indices of all documents, `dupe_factor` times: int64."""
        documents = tf.range(tf.size(document_starts, tf.int64) - 1)
        return [tf.tile(documents, [dupe_factor])]

    @staticmethod
    def loop(
        step: Callable[..., Any], state: Sequence[tf.Tensor], kinds: Sequence[type]
    ) -> list[tf.Tensor]:
        """See `draws.Arrays.loop`."""
        arrays = tuple(
            tf.TensorArray(
                _DTYPES[kind],
                size=0,
                dynamic_size=True,
                infer_shape=False,
                element_shape=[None],
            )
            for kind in kinds
        )

        def body(index, arrays, state):
            outputs, state = step(index, *state)
            written = tuple(
                array.write(index, output)
                for array, output in zip(arrays, outputs, strict=True)
            )
            return index + 1, written, state

        _, arrays, _ = tf.while_loop(
            lambda index, arrays, state: tf.size(state[0]) > 0,
            body,
            (tf.constant(0), arrays, tuple(state)),
            shape_invariants=(
                tf.TensorShape([]),
                tuple(tf.TensorShape(None) for _ in arrays),
                tuple(tf.TensorShape([None]) for _ in state),
            ),
            parallel_iterations=1,
        )
        return [array.concat() for array in arrays]

    @staticmethod
    def replaced(
        is_replaced: tf.Tensor,
        columns: Sequence[tf.Tensor],
        compute: Callable[[Any], Sequence[tf.Tensor]],
    ) -> list[tf.Tensor]:
        """See `draws.Arrays.replaced`. Computes all rows, to keep the shapes."""
        return [
            tf.where(is_replaced, values, column)
            for column, values in zip(columns, compute(slice(None)), strict=True)
        ]


class GraphDraws:
    """A stream of random numbers.

    Args:
        seed: integers or int tensors, scalar, that determine the stream.
    """

    def __init__(self, *seed: Any):
        self._key = tf.constant([0, 0], tf.int64)
        for number in seed:
            self._key = tf.random.experimental.stateless_fold_in(
                self._key, tf.cast(number, tf.int64)
            )
        self._num_calls = 0

    def part(self, number: Any) -> "GraphDraws":
        """Returns a separate stream for each number, such as the iteration of a loop.

        Different calls return different streams for the same number.
        """
        stream = GraphDraws()
        stream._key = tf.random.experimental.stateless_fold_in(
            self._next(), tf.cast(number, tf.int64)
        )
        return stream

    def uniform(self, shape: Any) -> tf.Tensor:
        """Returns numbers in [0, 1), float64."""
        return tf.random.stateless_uniform(shape, self._next(), dtype=tf.float64)

    def uniform_for(self, values: tf.Tensor) -> tf.Tensor:
        """Returns a number in [0, 1) for each of some values: float64."""
        return self.uniform(tf.shape(values))

    def below(self, limits: tf.Tensor) -> tf.Tensor:
        """Returns an integer from 0 to limit - 1 for each of `limits`: int64."""
        scaled = self.uniform(tf.shape(limits)) * tf.cast(limits, tf.float64)
        return tf.cast(scaled, tf.int64)

    def heads(self, counts: tf.Tensor) -> tf.Tensor:
        """Returns the number of heads among `counts` fair coins: int64."""
        return tf.random.stateless_binomial(
            tf.shape(counts),
            self._next(),
            counts=tf.cast(counts, tf.float64),
            probs=tf.constant(0.5, tf.float64),
            output_dtype=tf.int64,
        )

    def permutation(self, count: tf.Tensor) -> tf.Tensor:
        """Returns the numbers 0 to count - 1 in random order: int64 [count]."""
        return tf.cast(tf.argsort(self.uniform([count])), tf.int64)

    def _next(self):
        self._num_calls += 1
        return tf.random.experimental.stateless_fold_in(self._key, self._num_calls)


class GraphRowDraws:
    """Random numbers for the rows of an array, each row a function of its key alone.

    Any subset of the rows therefore gets the same numbers, as with `draws.RowDraws`.

    Args:
        keys: uint64 [B], from `row_keys`.

    Attributes:
        keys: uint64 [B], those of the next draws.
    """

    def __init__(self, keys: tf.Tensor):
        self.keys = keys

    def uniform(self, length: int) -> tf.Tensor:
        """Returns numbers in [0, 1): float64 [B, length]."""
        self.keys = _mix(self.keys)
        places = tf.cast(tf.range(length), tf.uint64)
        words = _shift_right(_mix(self.keys[:, None] + places), 11)
        return tf.cast(tf.bitcast(words, tf.int64), tf.float64) * _TWO_TO_THE_MINUS_53

    def below(self, limit: int, length: int) -> tf.Tensor:
        """Returns integers from 0 to limit - 1: int64 [B, length]."""
        return tf.cast(self.uniform(length) * limit, tf.int64)


def row_keys(*seed: Any, rows: tf.Tensor) -> tf.Tensor:
    """Returns a key for each row: uint64 [B].

    Args:
        *seed: integers or int tensors, scalar.
        rows: int64 [B], indices of the rows.
    """
    key = tf.zeros([], tf.uint64)
    for number in seed:
        key = _mix(key + tf.cast(number, tf.uint64))
    return _mix(key + tf.cast(rows, tf.uint64))


def _mix(values):
    """Does the same as `ordering.mix`."""
    values = values + tf.constant(0x9E3779B97F4A7C15, tf.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        shifted = tf.bitwise.bitwise_xor(values, _shift_right(values, shift))
        values = shifted * tf.constant(factor, tf.uint64)
    return tf.bitwise.bitwise_xor(values, _shift_right(values, 31))


def _shift_right(values, num_bits):
    return tf.bitwise.right_shift(values, tf.constant(num_bits, tf.uint64))
