"""Random numbers as TensorFlow ops, each a function of a seed and its place in a graph.

Nothing is stateful. A dataset that starts in the middle therefore makes the same draws
as one that started at the beginning, on any worker.
"""

from typing import Any

import tensorflow as tf


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
