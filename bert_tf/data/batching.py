"""Records to tf.data batches, each batch a function of (seed, step) alone."""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.data import length_buckets as length_buckets_module
from bert_tf.data import ordering
from bert_tf.data import read_errors
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord

_BATCHES_AHEAD = 4
_PARALLEL_READS = 2


class Source:
    """Rows by number, and the batches that they are cut into."""

    def training_batches(self, **arguments) -> tf.data.Dataset:
        """Returns `training_batches(self, ...)`."""
        return training_batches(self, **arguments)

    def evaluation_batches(self, **arguments) -> tf.data.Dataset:
        """Returns `evaluation_batches(self, ...)`."""
        return evaluation_batches(self, **arguments)

    def rows_at_step(self, step: tf.Tensor, indices: tf.Tensor, num_rows: int):
        """Returns `rows`; where a part of them is drawn, `step`, int64, decides."""
        return self.rows(indices, num_rows)

    clear_errors = staticmethod(read_errors.clear_errors)

    def row_lengths(self) -> np.ndarray:
        """Returns int [N], the places that each row uses, for grouping by length."""
        raise ValueError(
            "group_by_length needs rows in memory, and these are read from files."
        )


class TFRecordSource(Source):
    """Rows of TFRecord files.

    Args:
        record_files: the opened files.
        schema: the columns to parse.

    Attributes:
        num_examples: rows there are.
        columns: tuple of `schema.Column`.
    """

    def __init__(
        self,
        record_files: tfrecord.RecordFiles,
        schema: schema_module.Schema | None = None,
    ):
        self.num_examples = record_files.num_records
        self.columns = (schema or record_files.schema).columns
        self._record_files = record_files

    def rows(self, indices: tf.Tensor, num_rows: int) -> dict[str, tf.Tensor]:
        """Returns rows, inside a tf.data function.

        Args:
            indices: int64 [B], numbers of the rows.
            num_rows: B.

        Returns:
            [B] or [B, length] for each column.
        """
        records = tf.numpy_function(self._read, [indices], tf.string)
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
        return np.array(self._record_files.read(indices), dtype=object)


class ArraySource(Source):
    """Rows of arrays in memory.

    Args:
        columns: arrays [N], [N, length] or [N, parts, length] of integers or floats.

    Attributes:
        num_examples: rows there are, N.
        columns: tuple of `schema.Column`; `length` is the size of the last axis.

    Raises:
        ValueError: there are no rows, arrays differ in length, or an array has
            another rank or holds something else than numbers.
    """

    def __init__(self, columns: Mapping[str, np.ndarray]):
        self._arrays = {name: _as_rows(name, a) for name, a in columns.items()}
        lengths = {name: len(array) for name, array in self._arrays.items()}
        if len(set(lengths.values())) != 1 or not min(lengths.values()):
            raise ValueError(
                f"Expected columns with the same number of rows, at least one; "
                f"got {lengths}."
            )
        self.num_examples = next(iter(lengths.values()))
        self.columns = tuple(
            schema_module.Column(
                name=name,
                length=array.shape[-1] if array.ndim > 1 else None,
                dtype=array.dtype.name,
            )
            for name, array in self._arrays.items()
        )

    def rows(self, indices: tf.Tensor, num_rows: int) -> dict[str, tf.Tensor]:
        """Returns rows, inside a tf.data function; as `TFRecordSource.rows`."""
        values = tf.numpy_function(
            lambda places: [array[places] for array in self._arrays.values()],
            [indices],
            [column.dtype for column in self.columns],
        )
        return {
            name: tf.ensure_shape(value, [num_rows, *array.shape[1:]])
            for (name, array), value in zip(self._arrays.items(), values, strict=True)
        }

    def row_lengths(self):
        """Returns int [N], the places that each row uses: its longest part's."""
        lengths = np.sum(self._arrays["input_mask"] > 0, axis=-1)
        return lengths if lengths.ndim == 1 else np.max(lengths, axis=-1)


def training_batches(
    source,
    *,
    batch_size: int,
    num_steps: int,
    start_step: int = 0,
    seed: int,
    shuffle_buffer_size: int = 0,
    length_buckets: Sequence[int] = (),
    group_by_length: bool = False,
    share: range | None = None,
) -> tf.data.Dataset:
    """Returns the batches of steps `start_step` to `num_steps - 1`.

    Epochs are laid end to end and cut into batches, so a batch may hold the end of
    one and the start of the next. The batch of a step is a function of (seed, step)
    alone: batches before `start_step` are not read.

    Args:
        source: a `TFRecordSource` or an `ArraySource`.
        batch_size: rows per step, B.
        num_steps: steps of the whole run.
        start_step: the first step wanted.
        seed: fixes the order.
        shuffle_buffer_size: 0: every epoch is a permutation of all rows; 1: every
            epoch is in order; more: rows are permuted within windows of that many
            neighbours, and the windows among each other, so that reading stays local.
        length_buckets: lengths to cut a batch's sequence columns to: the smallest
            that holds its longest row. Empty: rows keep their length.
        group_by_length: whether rows of like length share a batch. Which do is a
            function of (seed, epoch) too, but not the order that there is without.
        share: rows of every batch that are wanted, such as range(8, 16); None for
            all. Others are read only where `length_buckets` have to know them.

    Returns:
        Dicts of the source's columns [B, ...] with `example_index` (int32 [B], 0 to
        B - 1; that of `share`) and `step` (int32 [B]). Shapes are static without
        `length_buckets`.

    Raises:
        ValueError: a number that cannot be.
    """
    _check_sizes(batch_size, length_buckets)
    if shuffle_buffer_size < 0:
        raise ValueError(
            f"shuffle_buffer_size: expected at least 0, got {shuffle_buffer_size}."
        )
    order = ordering.Order(source.num_examples, seed=seed, window=shuffle_buffer_size)
    if group_by_length:
        order = ordering.GroupedOrder(
            source.row_lengths(), order=order, batch_size=batch_size
        )

    share = share or range(batch_size)
    read = range(batch_size) if length_buckets else share

    def indices_of(step):
        return order.indices(int(step) * batch_size + read.start, len(read))

    def batch(step):
        indices = tf.numpy_function(indices_of, [step], tf.int64)
        indices = tf.ensure_shape(indices, [len(read)])
        features = source.rows_at_step(step, indices, len(read))
        features["example_index"] = tf.range(read.start, read.stop)
        features["step"] = tf.fill([len(read)], tf.cast(step, tf.int32))
        return features

    dataset = _dataset(batch, range(start_step, num_steps), source, length_buckets)
    if read == share:
        return dataset
    return dataset.map(
        lambda batch: {
            name: column[share.start : share.stop] for name, column in batch.items()
        }
    )


def evaluation_batches(
    source, *, batch_size: int, length_buckets: Sequence[int] = ()
) -> tf.data.Dataset:
    """Returns every row once, in order.

    Args:
        source: a `TFRecordSource` or an `ArraySource`.
        batch_size: rows per batch, B. The last batch is filled up with rows of zeros.
        length_buckets: as for `training_batches`.

    Returns:
        Dicts of the source's columns [B, ...] with `is_real_example` (float32 [B]):
        1 for a row of the source, 0 for one of zeros.

    Raises:
        ValueError: a number that cannot be.
    """
    _check_sizes(batch_size, length_buckets)
    num_examples = source.num_examples

    def batch(step):
        indices = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        is_real = indices < num_examples
        features = source.rows(tf.minimum(indices, num_examples - 1), batch_size)
        features = {
            name: tf.where(_per_row(is_real, values), values, tf.zeros_like(values))
            for name, values in features.items()
        }
        features["is_real_example"] = tf.cast(is_real, tf.float32)
        return features

    return _dataset(
        batch, range(-(-num_examples // batch_size)), source, length_buckets
    )


def _dataset(batch, steps, source, length_buckets):
    dataset = tf.data.Dataset.range(steps.start, max(steps.start, steps.stop))
    dataset = dataset.map(batch, num_parallel_calls=_PARALLEL_READS, deterministic=True)
    if length_buckets:
        dataset = length_buckets_module.cut(dataset, length_buckets=length_buckets)
    options = tf.data.Options()
    options.deterministic = True
    # Nothing here is left to tf.data's tuner. Its thread sleeps up to a minute at a
    # time, and an iterator does not end before the thread has woken.
    options.autotune.enabled = False
    return dataset.prefetch(_BATCHES_AHEAD).with_options(options)


def _per_row(flags, values):
    return tf.reshape(flags, [-1] + [1] * (values.shape.rank - 1))


def _as_rows(name, array):
    array = np.asarray(array)
    if array.ndim not in (1, 2, 3) or array.dtype.kind not in "iufb":
        raise ValueError(
            f"Column {name}: expected numbers of shape [N], [N, length] or [N, parts, "
            f"length], got {array.dtype} {array.shape}."
        )
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int32)


def _check_sizes(batch_size, length_buckets):
    if batch_size < 1:
        raise ValueError(f"batch_size: expected at least 1, got {batch_size}.")
    length_buckets_module.check(length_buckets)


_RECORD_DTYPES = {"int32": tf.int64, "float32": tf.float32}
