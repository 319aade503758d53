"""Makes tf.data batches from rows; each batch is a function of (seed, step) alone.

Shape letters: B batch, N rows of a source.
"""

import contextlib
import re
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.data import ordering
from bert_tf.data import remote_blocks
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord

_BATCHES_AHEAD = 4
_PARALLEL_READS = 2
# The exceptions that `tfrecord` and `files` raise.
_RAISED_BY_READING: tuple[type[Exception], ...] = (ValueError, *files.RAISED)


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """Turns errors that tf.data raises for records or files into a ValueError.

    Use it around the iteration over a dataset of this module. The message is the one
    that `RecordFiles.read` raised inside tf.data, with file and byte.
    """
    try:
        yield
    except tf.errors.OpError as error:
        message = error.message or ""
        names = "|".join(kind.__name__ for kind in _RAISED_BY_READING)
        raised = re.search(rf"(?:{names}): (.+)", message)
        if raised:
            raise ValueError(raised[1].strip()) from None
        if "ParseExample" in message:
            reason = re.search(r"Key: .*", message)
            raise ValueError(
                "A record has different columns or lengths from the first record of "
                f"its file ({reason[0] if reason else message})."
            ) from None
        raise


class Source:
    """Numbered rows, and the batches made from them.

    Attributes:
        num_examples: number of rows, N.
        columns: the columns of a row.
    """

    num_examples: int
    columns: tuple[schema_module.Column, ...]

    def rows(self, indices: tf.Tensor, num_rows: int) -> dict[str, tf.Tensor]:
        """Returns rows, inside a tf.data function.

        What it returns must be a function of the arguments alone, and every
        `tf.numpy_function` must have stateful=False: otherwise, TensorFlow runs the
        whole pipeline in series with deterministic operations, without reading ahead.

        Args:
            indices: int64 [B], indices of the rows.
            num_rows: B.
        """
        raise NotImplementedError

    def rows_at_step(
        self, step: tf.Tensor, indices: tf.Tensor, places: range
    ) -> dict[str, tf.Tensor]:
        """Returns `rows`. A source that draws parts of a row overrides this.

        What it draws must be a function of (seed, step, example).

        Args:
            step: int64 [], the step that the batch is for.
            indices: int64 [B], indices of the rows.
            places: of the B rows in the step's global batch.
        """
        return self.rows(indices, len(places))

    def order(self, *, seed: int, window: int) -> ordering.Order:
        """Returns the order of training; `window` is its `shuffle_buffer_size`."""
        return ordering.Order(self.num_examples, seed=seed, window=window)

    def read_ahead(self, order: ordering.Order, position: int, count: int) -> None:
        """Starts to read what training needs next, if that takes time.

        Args:
            order: the order of the rows.
            position: the position that is read now.
            count: number of rows that are read now.
        """

    def training_batches(self, **arguments: Any) -> tf.data.Dataset:
        """Returns `training_batches(self, ...)`."""
        return training_batches(self, **arguments)

    def evaluation_batches(self, **arguments: Any) -> tf.data.Dataset:
        """Returns `evaluation_batches(self, ...)`."""
        return evaluation_batches(self, **arguments)

    clear_errors = staticmethod(clear_errors)

    def row_lengths(self) -> np.ndarray | None:
        """Returns how many positions each row uses, in its longest part: int [N].

        They are known for rows in memory with an `input_mask`; otherwise None.
        """
        return None


class TFRecordSource(Source):
    """Rows of TFRecord files.

    Args:
        record_files: the opened files.
        schema: the columns to parse. Default: all columns of the files.
    """

    def __init__(
        self,
        record_files: tfrecord.RecordFiles,
        schema: schema_module.Schema | None = None,
    ):
        self.num_examples = record_files.num_records
        self.columns = (schema or record_files.schema).columns
        self._record_files = record_files
        self._reader: Any = record_files
        if record_files.is_remote:
            self._reader = remote_blocks.BlockReader(record_files)

    def order(self, *, seed: int, window: int) -> ordering.Order:
        """See `Source.order`. Remote files have an order that reads whole blocks."""
        if self._record_files.is_remote:
            return self._reader.order(seed=seed, window=window)
        return super().order(seed=seed, window=window)

    def read_ahead(self, order: ordering.Order, position: int, count: int) -> None:
        """See `Source.read_ahead`."""
        if self._record_files.is_remote:
            ahead = max(order.rows_per_part, _BATCHES_AHEAD * count)
            self._reader.prefetch(order.ranges(position, count + ahead))

    def rows(self, indices: tf.Tensor, num_rows: int) -> dict[str, tf.Tensor]:
        """See `Source.rows`."""
        records = tf.numpy_function(self._read, [indices], tf.string, stateful=False)
        records = tf.ensure_shape(records, [num_rows])
        parsed = tf.io.parse_example(
            records,
            {
                column.name: tf.io.FixedLenFeature(
                    column.shape, _RECORD_DTYPES[column.dtype]
                )
                for column in self.columns
            },
        )
        return {c.name: tf.cast(parsed[c.name], c.dtype) for c in self.columns}

    def _read(self, indices):
        return np.array(self._reader.read(indices), dtype=object)


class ComputedSource(Source):
    """Rows that a NumPy function computes.

    Args:
        compute: returns the columns of B rows, [B, ...], by name. `rows` passes it the
            indices of the rows, `computed` its own arguments.
        num_examples: number of rows, N.
        sample: columns of any number of rows, for their shapes and dtypes. The last
            axis is the length of a column.
    """

    def __init__(
        self,
        compute: Callable[..., Mapping[str, np.ndarray]],
        *,
        num_examples: int,
        sample: Mapping[str, np.ndarray],
    ):
        self._compute = compute
        self.num_examples = num_examples
        self._shapes = {name: array.shape[1:] for name, array in sample.items()}
        self.columns = tuple(
            schema_module.Column(
                name=name,
                length=array.shape[-1] if array.ndim > 1 else None,
                dtype=array.dtype.name,
            )
            for name, array in sample.items()
        )

    def rows(self, indices: tf.Tensor, num_rows: int) -> dict[str, tf.Tensor]:
        """See `Source.rows`."""
        return self.computed([indices], num_rows)

    def computed(
        self, arguments: Sequence[tf.Tensor], num_rows: int
    ) -> dict[str, tf.Tensor]:
        """Returns the rows computed from arguments, inside a tf.data function."""
        values = tf.numpy_function(
            lambda *arrays: list(self._compute(*arrays).values()),
            arguments,
            [column.dtype for column in self.columns],
            stateful=False,
        )
        return {
            name: tf.ensure_shape(value, [num_rows, *shape])
            for (name, shape), value in zip(self._shapes.items(), values, strict=True)
        }


class ArraySource(ComputedSource):
    """Rows of arrays in memory.

    Args:
        columns: arrays [N], [N, length] or [N, parts, length] of integers or floats.

    Raises:
        ValueError: there are no rows, arrays differ in N, or an array has a different
            rank or does not contain numbers.
    """

    def __init__(self, columns: Mapping[str, np.ndarray]):
        arrays = {name: _as_rows(name, a) for name, a in columns.items()}
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) != 1 or not min(lengths.values()):
            raise ValueError(
                f"Expected columns with the same number of rows, at least one; "
                f"got {lengths}."
            )
        super().__init__(
            lambda indices: {name: array[indices] for name, array in arrays.items()},
            num_examples=next(iter(lengths.values())),
            sample=arrays,
        )
        self._arrays = arrays

    def row_lengths(self) -> np.ndarray | None:
        """See `Source.row_lengths`."""
        if "input_mask" not in self._arrays:
            return None
        lengths = np.sum(self._arrays["input_mask"] > 0, axis=-1)
        return np.max(lengths.reshape(len(lengths), -1), axis=-1)


def training_batches(
    source: Source,
    *,
    batch_size: int,
    num_steps: int,
    start_step: int = 0,
    seed: int,
    shuffle_buffer_size: int = 0,
    length_buckets: Sequence[int] = (),
    share: range | None = None,
) -> tf.data.Dataset:
    """Returns the batches of steps `start_step` to `num_steps - 1`.

    Epochs follow each other without a gap, so one batch may contain the end of an epoch
    and the start of the next. The batch of a step is a function of (seed, step) alone:
    a resumed run does not read the batches before `start_step`.

    Args:
        source: the rows.
        batch_size: rows per step, B.
        num_steps: number of steps of the whole run.
        start_step: the first step to return.
        seed: determines the order.
        shuffle_buffer_size: 0: each epoch is a permutation of all rows; of remote
            files, a permutation that reads them in blocks. 1: each epoch is in order.
        length_buckets: lengths to cut the sequence columns of a batch to: the smallest
            one that fits its longest row. Empty: rows keep their length.
        share: the rows of each batch to return, such as range(8, 16); None for all.
            The other rows are read only if `length_buckets` needs their lengths.

    Returns:
        Dicts of the source's columns [B, ...] with `example_index` (int32 [B], index in
        the global batch) and `step` (int32 [B]). Shapes are static without
        `length_buckets`.
    """
    rows = source.order(seed=seed, window=shuffle_buffer_size)
    share = share or range(batch_size)
    read = range(batch_size) if length_buckets else share

    def indices_of(step):
        position = int(step) * batch_size + read.start
        source.read_ahead(rows, position, len(read))
        return rows.indices(position, len(read))

    def batch(step):
        indices = tf.numpy_function(indices_of, [step], tf.int64, stateful=False)
        indices = tf.ensure_shape(indices, [len(read)])
        features = source.rows_at_step(step, indices, read)
        features["example_index"] = tf.range(read.start, read.stop)
        features["step"] = tf.fill([len(read)], tf.cast(step, tf.int32))
        return features

    dataset = _dataset(batch, range(start_step, num_steps))
    return prepared(dataset, length_buckets=length_buckets, read=read, share=share)


def evaluation_batches(
    source: Source,
    *,
    batch_size: int,
    length_buckets: Sequence[int] = (),
    order: np.ndarray | None = None,
) -> tf.data.Dataset:
    """Returns every row once.

    Args:
        source: the rows.
        batch_size: rows per batch, B. Rows of zeros complete the last batch.
        length_buckets: as for `training_batches`.
        order: int [N], the rows' indices in the order of the batches; None: 0 to N - 1.

    Returns:
        Dicts of the source's columns [B, ...] with `is_real_example` (float32 [B]):
        1 for a row of the source, 0 for a row of zeros.
    """
    num_examples = source.num_examples

    def batch(step):
        places = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        is_real = places < num_examples
        indices = tf.minimum(places, num_examples - 1)
        if order is not None:
            indices = tf.gather(tf.constant(order, tf.int64), indices)
        features = source.rows(indices, batch_size)
        features = {
            name: tf.where(
                tf.reshape(is_real, [-1] + [1] * (values.shape.rank - 1)), values, 0
            )
            for name, values in features.items()
        }
        features["is_real_example"] = tf.cast(is_real, tf.float32)
        return features

    dataset = _dataset(batch, range(-(-num_examples // batch_size)))
    return prepared(dataset, length_buckets=length_buckets)


@tf.autograph.experimental.do_not_convert
def prepared(
    batches: tf.data.Dataset,
    *,
    length_buckets: Sequence[int] = (),
    read: range | None = None,
    share: range | None = None,
) -> tf.data.Dataset:
    """Returns batches as training and evaluation read them: cut, and ahead of time.

    Args:
        batches: dicts of columns [B, ...].
        length_buckets: as for `training_batches`.
        read: the rows of the global batch that `batches` contains; None: all.
        share: those to return; None: those of `read`.
    """
    if length_buckets:
        batches = batches.map(lambda features: _cut(features, length_buckets))
    options = tf.data.Options()
    options.deterministic = True
    # The autotuning thread sleeps for up to a minute, and an iterator does not end
    # before the thread wakes.
    options.autotune.enabled = False
    batches = batches.prefetch(_BATCHES_AHEAD).with_options(options)
    if read is None or share is None or read == share:
        return batches
    rows = slice(share.start - read.start, share.stop - read.start)
    return batches.map(lambda batch: {name: c[rows] for name, c in batch.items()})


@tf.autograph.experimental.do_not_convert  # Converting takes time and is not needed.
def _dataset(batch, steps):
    dataset = tf.data.Dataset.range(steps.start, max(steps.start, steps.stop))
    return dataset.map(batch, num_parallel_calls=_PARALLEL_READS, deterministic=True)


def _as_rows(name, array):
    array = np.asarray(array)
    if array.ndim not in (1, 2, 3) or array.dtype.kind not in "iufb":
        raise ValueError(
            f"Column {name}: expected numbers of shape [N], [N, length] or [N, parts, "
            f"length], got {array.dtype} {array.shape}."
        )
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int32)


def _cut(features, length_buckets):
    """Returns features with sequence columns [..., bucket] that fit the longest row.

    Only padding is cut off, and padding does not affect the other positions, so the
    losses stay the same up to rounding. With dropout, a batch of a different length has
    different dropout masks, because they depend on the index of an element within its
    row.
    """
    trimmed = dict(features)
    for mask, names in _COLUMNS_OF_MASK.items():
        if mask in features:
            length = _bucket(features[mask] > 0, length_buckets)
            for name in features.keys() & set(names):
                trimmed[name] = features[name][..., :length]
    return trimmed


def _bucket(is_used, length_buckets):
    """Returns the smallest bucket that fits the longest row of bool [..., S]."""
    full_length = is_used.shape[-1]
    shorter = {bucket for bucket in length_buckets if bucket < full_length}
    if not shorter:
        return full_length
    buckets = tf.constant(sorted({*shorter, full_length}), tf.int32)
    used = tf.reduce_any(is_used, axis=list(range(is_used.shape.rank - 1)))  # [S]
    longest = tf.reduce_max(tf.where(used, tf.range(1, full_length + 1), 0))
    return tf.reduce_min(tf.boolean_mask(buckets, buckets >= longest))


_RECORD_DTYPES = {"int32": tf.int64, "float32": tf.float32}
_COLUMNS_OF_MASK = {
    "input_mask": schema_module.SEQUENCE_COLUMNS,
    "query_input_mask": schema_module.QUERY_COLUMNS,
}
