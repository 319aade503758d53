"""A source of batches that assembles the rows of windows on demand."""

import numpy as np
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import schema as schema_module
from bert_tf.tasks.question_answering import windows as question_answering_windows


class WindowSource(batching.Source):
    """The rows of windows.

    Rows are assembled per batch. Storing them all would repeat each context once per
    question and, where windows overlap, once more per window.

    Attributes:
        num_examples: number of windows, W.
        columns: the columns of a row.
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
        """Returns rows inside a tf.data function; see `batching.Source.rows`."""
        values = tf.numpy_function(
            lambda numbers: list(self._windows.rows(numbers).values()),
            [indices],
            [column.dtype for column in self.columns],
            stateful=False,
        )
        return {
            column.name: tf.ensure_shape(value, [num_rows, *column.shape])
            for column, value in zip(self.columns, values, strict=True)
        }

    def row_lengths(self) -> np.ndarray:
        """Returns the number of pieces in each row without padding: int64 [W]."""
        return self._windows.lengths
