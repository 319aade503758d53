"""TensorFlow ops for `pairs` and `rows`, and random numbers without a state.

The numbers depend on their place in a graph alone. A dataset that starts in the middle
therefore makes the same draws as one that started at the beginning, on any worker.
"""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.pretraining_data import draws as draws_module

_TWO_TO_THE_MINUS_53 = 2.0**-53
_DTYPES = {int: tf.int64, bool: tf.bool}


class GraphArrays:
    """As `draws.Arrays`, with TensorFlow ops."""

    arange = staticmethod(functools.partial(tf.range, dtype=tf.int64))
    zeros_like = staticmethod(tf.zeros_like)
    copy = staticmethod(tf.identity)
    cast = staticmethod(tf.cast)
    take = staticmethod(tf.gather)
    take_along = staticmethod(functools.partial(tf.gather, batch_dims=1))
    where = staticmethod(tf.where)
    minimum = staticmethod(tf.minimum)
    maximum = staticmethod(tf.maximum)
    min = staticmethod(tf.reduce_min)
    max = staticmethod(tf.reduce_max)
    sum = staticmethod(tf.reduce_sum)
    cumsum = staticmethod(tf.cumsum)
    cumprod = staticmethod(tf.math.cumprod)
    clip = staticmethod(tf.clip_by_value)
    round = staticmethod(tf.round)
    argmax = staticmethod(tf.argmax)
    search = staticmethod(functools.partial(tf.searchsorted, out_type=tf.int64))
    concat = staticmethod(functools.partial(tf.concat, axis=0))
    stack = staticmethod(tf.stack)
    pad = staticmethod(tf.pad)
    repeat = staticmethod(tf.repeat)
    reshape = staticmethod(tf.reshape)
    as_flags = staticmethod(functools.partial(tf.cast, dtype=tf.int32))

    @staticmethod
    def constant(values: np.ndarray) -> tf.Tensor:
        """Returns a constant that every graph can capture."""
        with tf.init_scope():
            return tf.constant(values)

    @staticmethod
    def size(values: tf.Tensor) -> tf.Tensor:
        """Returns the number of rows: int64."""
        return tf.shape(values, tf.int64)[0]

    @staticmethod
    def take_clipped(values: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
        """Returns values at indices, of which some may be out of range."""
        last = tf.shape(values, tf.int64)[0] - 1
        return tf.gather(values, tf.clip_by_value(indices, 0, last))

    @staticmethod
    def flat_nonzero(values: tf.Tensor) -> tf.Tensor:
        """Returns where booleans are True, as indices of the flat array: int64."""
        return tf.where(tf.reshape(values, [-1]))[:, 0]

    @staticmethod
    def argsort(values: tf.Tensor, axis: int, stable: bool = False) -> tf.Tensor:
        """Returns the order of values or booleans: int32."""
        if values.dtype == tf.bool:
            values = tf.cast(values, tf.int32)
        return tf.argsort(values, axis=axis, stable=stable)

    @staticmethod
    def count(values: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
        """See `draws.Arrays.count`."""
        values, size = tf.cast(values, tf.int32), tf.cast(size, tf.int32)
        return tf.math.bincount(values, minlength=size, dtype=tf.int64)

    @staticmethod
    def put(values: tf.Tensor, indices: tf.Tensor, new: Any) -> tf.Tensor:
        """See `draws.Arrays.put`."""
        new = tf.broadcast_to(tf.cast(new, values.dtype), tf.shape(indices))
        flat = tf.reshape(values, [-1])
        flat = tf.tensor_scatter_nd_update(flat, indices[:, None], new)
        return tf.reshape(flat, [-1, *values.shape[1:]])

    @staticmethod
    def put_along(order: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
        """See `draws.Arrays.put_along`."""
        return tf.gather(values, tf.argsort(order, axis=1), batch_dims=1)

    @staticmethod
    def nth_smallest(keys: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        """See `draws.Arrays.nth_smallest`."""
        n = tf.minimum(n, keys.shape[1])
        return tf.gather(tf.sort(keys, axis=1), n - 1, batch_dims=1)

    @staticmethod
    def scan(
        step: Callable[..., Any], state: tf.Tensor, columns: tf.Tensor
    ) -> tf.Tensor:
        """See `draws.Arrays.scan`."""
        initial = (state, tf.zeros_like(state, tf.bool))
        _, flags = tf.scan(
            lambda state, column: step(state[0], column),
            tf.transpose(columns),
            initial,
        )
        return tf.transpose(flags)

    @staticmethod
    def attempts(
        step: Callable[..., Any],
        state: Sequence[tf.Tensor],
        draws: "GraphRowDraws",
        most: int,
    ) -> Sequence[tf.Tensor]:
        """See `draws.Arrays.attempts`."""

        def body(keys, *state):
            own_draws = GraphRowDraws(keys)
            state = step(own_draws, *state)
            return (own_draws.keys, *state)

        draws.keys, *state = tf.while_loop(
            lambda keys, *state: tf.reduce_any(state[-1] > 0),
            body,
            (draws.keys, *state),
            maximum_iterations=most,
        )
        return state

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

    def words(self, length: int) -> tf.Tensor:
        """Returns random words: uint64 [B, length]."""
        self.keys = _mix(self.keys)
        return _mix(self.keys[:, None] + tf.cast(tf.range(length), tf.uint64))

    def uniform_rows(self, num_rows: Any, length: int) -> tf.Tensor:
        """Returns numbers in [0, 1): float64 [B, length]."""
        return _as_uniform(self.words(length))

    def uniform_at(self, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
        """Returns a number in [0, 1) for each of N positions: float64 [N]."""
        self.keys = _mix(self.keys)
        keys = tf.gather(self.keys, rows) + tf.cast(columns, tf.uint64)
        return _as_uniform(_mix(keys))

    def shuffle_keys(self, is_item: tf.Tensor) -> tf.Tensor:
        """Returns sort keys [B, S], as `draws.RowDraws.shuffle_keys`."""
        length = is_item.shape[1]
        dtype, num_bits = tf.uint64, length.bit_length()
        if num_bits <= draws_module.MAX_POSITION_BITS:
            dtype = tf.uint32
        keys = self.words(-(-length * dtype.size // 8))
        if dtype == tf.uint32:
            keys = tf.reshape(tf.bitcast(keys, dtype), [-1, 2 * keys.shape[1]])
        bits = tf.constant(num_bits, dtype)
        keys = tf.bitwise.right_shift(keys[:, :length], bits)
        keys = tf.bitwise.left_shift(keys, bits)
        keys = tf.bitwise.bitwise_or(keys, tf.cast(tf.range(length), dtype))
        return tf.where(is_item, keys, dtype.max)


def _as_uniform(words):
    numbers = tf.bitcast(_shift_right(words, 11), tf.int64)
    return tf.cast(numbers, tf.float64) * _TWO_TO_THE_MINUS_53


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
