"""Random numbers as TensorFlow ops, each a function of a seed and its place in a graph.

Nothing is stateful. A dataset that starts in the middle therefore makes the same draws
as one that started at the beginning, on any worker.
"""

from typing import Any

import tensorflow as tf

_TWO_TO_THE_MINUS_53 = 2.0**-53


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
