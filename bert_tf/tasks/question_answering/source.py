"""Windows as a source of batches: rows are put together when a batch needs them."""

import numpy as np
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import schema as schema_module
from bert_tf.tasks.question_answering import windows as question_answering_windows


class WindowSource(batching.Source):
    """The rows of windows.

    Args:
        windows: `Windows`.

    Attributes:
        num_examples: rows there are, W.
        columns: tuple of `schema.Column`.
    """

    def __init__(self, windows: question_answering_windows.Windows):
        self.num_examples = len(windows)
        self._windows = windows
        self.columns = tuple(
            schema_module.Column(
                name=name,
                length=column.shape[1] if column.ndim == 2 else None,
                dtype=column.dtype.name,
            )
            for name, column in windows.rows(np.zeros(1, np.int64)).items()
        )

    def rows(self, indices: tf.Tensor, num_rows: int) -> dict[str, tf.Tensor]:
        """Returns rows, inside a tf.data function; as `batching.ArraySource.rows`."""
        values = tf.numpy_function(
            lambda places: list(self._windows.rows(places).values()),
            [indices],
            [column.dtype for column in self.columns],
        )
        return {
            column.name: tf.ensure_shape(value, [num_rows, *column.shape])
            for column, value in zip(self.columns, values, strict=True)
        }

    def row_lengths(self) -> np.ndarray:
        """Returns int64 [W], the places that each row uses."""
        return self._windows.lengths
