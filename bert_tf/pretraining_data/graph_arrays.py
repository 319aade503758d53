"""The functions of `numpy_arrays` as TensorFlow ops, for the graphs of `tf.data`."""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.pretraining_data import numpy_arrays

_DTYPES = {int: tf.int64, bool: tf.bool}


amax = tf.experimental.numpy.amax
amin = tf.experimental.numpy.amin
argmax = tf.experimental.numpy.argmax
argsort = tf.experimental.numpy.argsort
clip = tf.experimental.numpy.clip
concatenate = tf.experimental.numpy.concatenate
copy = tf.experimental.numpy.copy
count_nonzero = tf.experimental.numpy.count_nonzero
cumprod = tf.experimental.numpy.cumprod
cumsum = tf.experimental.numpy.cumsum
full_like = tf.experimental.numpy.full_like
maximum = tf.experimental.numpy.maximum
minimum = tf.experimental.numpy.minimum
nonzero = tf.experimental.numpy.nonzero
pad = tf.experimental.numpy.pad
reshape = tf.experimental.numpy.reshape
sort = tf.experimental.numpy.sort
stack = tf.experimental.numpy.stack
take = tf.experimental.numpy.take
where = tf.experimental.numpy.where
zeros_like = tf.experimental.numpy.zeros_like
# Some functions of these names in `tf.experimental.numpy` accept NumPy arrays only.
arange = functools.partial(tf.range, dtype=tf.int64)
repeat = tf.repeat
rint = tf.round
searchsorted = functools.partial(tf.searchsorted, out_type=tf.int64)
cast = tf.cast
take_along = functools.partial(tf.gather, batch_dims=1)
as_flags = functools.partial(tf.cast, dtype=tf.int32)


def constant(values: np.ndarray) -> tf.Tensor:
    """Returns a constant that every graph can capture."""
    with tf.init_scope():
        return tf.constant(values)


def size(values: tf.Tensor) -> tf.Tensor:
    """Returns the number of rows: int64."""
    return tf.shape(values, tf.int64)[0]


def mix(values: tf.Tensor) -> tf.Tensor:
    """Does the same as `ordering.mix`."""
    values = values + tf.constant(0x9E3779B97F4A7C15, tf.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        shifted = values ^ tf.bitwise.right_shift(values, np.uint64(shift))
        values = shifted * tf.constant(factor, tf.uint64)
    return values ^ tf.bitwise.right_shift(values, np.uint64(31))


def as_uniform(words: tf.Tensor) -> tf.Tensor:
    """See `numpy_arrays.as_uniform`."""
    words = tf.bitwise.right_shift(words, np.uint64(11))
    numbers = tf.cast(tf.bitcast(words, tf.int64), tf.float64)
    return numbers * numpy_arrays.TWO_TO_THE_MINUS_53


def halves(words: tf.Tensor) -> tf.Tensor:
    """See `numpy_arrays.halves`."""
    return tf.reshape(tf.bitcast(words, tf.uint32), [-1, 2 * words.shape[1]])


def count(values: tf.Tensor, limit: tf.Tensor) -> tf.Tensor:
    """See `numpy_arrays.count`."""
    return tf.math.unsorted_segment_sum(tf.ones_like(values), values, limit)


def put(values: tf.Tensor, indices: tf.Tensor, new: Any) -> tf.Tensor:
    """See `numpy_arrays.put`."""
    new = tf.broadcast_to(tf.cast(new, values.dtype), tf.shape(indices))
    flat = tf.reshape(values, [-1])
    flat = tf.tensor_scatter_nd_update(flat, indices[:, None], new)
    return tf.reshape(flat, [-1, *values.shape[1:]])


def put_along(order: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """See `numpy_arrays.put_along`."""
    return tf.gather(values, tf.argsort(order, axis=1), batch_dims=1)


def scan(step: Callable[..., Any], state: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """See `numpy_arrays.scan`."""
    initial = (state, tf.zeros_like(state, tf.bool))
    _, flags = tf.scan(
        lambda state, column: step(state[0], column),
        tf.transpose(columns),
        initial,
    )
    return tf.transpose(flags)


def attempts(
    step: Callable[..., Any],
    state: Sequence[tf.Tensor],
    draws: numpy_arrays.RowDraws,
    most: int,
) -> Sequence[tf.Tensor]:
    """See `numpy_arrays.attempts`."""

    def body(keys, *state):
        own_draws = numpy_arrays.RowDraws(draws.arrays, keys)
        state = step(own_draws, *state)
        return (own_draws.keys, *state)

    draws.keys, *state = tf.while_loop(
        lambda keys, *state: tf.reduce_any(state[-1] > 0),
        body,
        (draws.keys, *state),
        maximum_iterations=most,
    )
    return state


def passes(document_starts: tf.Tensor, dupe_factor: int) -> list[tf.Tensor]:
    """Returns the indices of all documents, `dupe_factor` times: int64."""
    documents = tf.range(tf.size(document_starts, tf.int64) - 1)
    return [tf.tile(documents, [dupe_factor])]


def loop(
    step: Callable[..., Any], state: Sequence[tf.Tensor], kinds: Sequence[type]
) -> list[tf.Tensor]:
    """See `numpy_arrays.loop`."""
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


def replaced(
    is_replaced: tf.Tensor,
    columns: Sequence[tf.Tensor],
    compute: Callable[[Any], Sequence[tf.Tensor]],
) -> list[tf.Tensor]:
    """See `numpy_arrays.replaced`. Computes all rows, to keep the shapes."""
    return [
        tf.where(is_replaced, values, column)
        for column, values in zip(columns, compute(slice(None)), strict=True)
    ]


class GraphDraws:
    """A stream of random numbers. The integers, or int scalars, determine it.

    It has no state: the numbers depend on their place in a graph alone. A dataset that
    starts in the middle therefore makes the same draws as one that started at the
    beginning, on any worker.
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

    def uniform(self, count: Any) -> tf.Tensor:
        """Returns numbers in [0, 1): float64 [count]."""
        return tf.random.stateless_uniform([count], self._next(), dtype=tf.float64)

    def below(self, limits: tf.Tensor) -> tf.Tensor:
        """Returns an integer from 0 to limit - 1 for each of `limits`: int64."""
        scaled = self.uniform(tf.size(limits)) * tf.cast(limits, tf.float64)
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
        return tf.cast(tf.argsort(self.uniform(count)), tf.int64)

    def _next(self):
        self._num_calls += 1
        return tf.random.experimental.stateless_fold_in(self._key, self._num_calls)


def row_keys(*seed: Any, rows: tf.Tensor) -> tf.Tensor:
    """Returns a key for each of B row numbers: uint64 [B]."""
    key = tf.zeros([], tf.uint64)
    for number in seed:
        key = mix(key + tf.cast(number, tf.uint64))
    return mix(key + tf.cast(rows, tf.uint64))
