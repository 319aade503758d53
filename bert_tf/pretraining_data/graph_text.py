"""Reads raw text with TensorFlow ops, so that a dataset runs no Python."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.data import corpus as data_corpus

_MAX_INT64 = np.iinfo(np.int64).max


class SpanTable:
    """Reads the lines of shards with TensorFlow ops.

    Args:
        shards: the shards.

    Raises:
        OSError: a file cannot be read.
    """

    def __init__(self, shards: Sequence[data_corpus.Shard]):
        spans = [span for shard in shards for span in shard.spans]
        counts = [len(shard.spans) for shard in shards]
        sizes = {path: files.size(path) for path in {s.path for s in spans}}
        with tf.init_scope():
            self._first = tf.constant(np.cumsum([0, *counts]), tf.int64)
            self._path = tf.constant([span.path for span in spans])
            self._start = tf.constant([span.start for span in spans], tf.int64)
            self._end = tf.constant([span.end for span in spans], tf.int64)
            self._size = tf.constant([sizes[span.path] for span in spans], tf.int64)
            self._opens = tf.constant([span.starts_document for span in spans])

    def lines(self, shards: tf.Tensor) -> tf.data.Dataset:
        """Returns the lines of shards, one element (shard, tf.string [lines]) for each.

        The end of a file does not end a document.

        Args:
            shards: int64 [S], indices of the shards.
        """

        def parts(shard):
            index = tf.data.Dataset.range(self._first[shard], self._first[shard + 1])
            parts = index.flat_map(self._part).batch(_MAX_INT64)
            return parts.map(lambda parts: (shard, self._lines(shard, parts)))

        return tf.data.Dataset.from_tensor_slices(shards).flat_map(parts)

    def _lines(self, shard, parts):
        """Returns the lines of a shard's spans."""
        text = tf.strings.reduce_join(parts, separator="\n")
        is_utf8 = text == tf.strings.unicode_transcode(
            text, "UTF-8", "UTF-8", errors="ignore"
        )
        path = tf.gather(self._path, self._first[shard])
        tf.debugging.Assert(is_utf8, ["Not UTF-8; convert the file to UTF-8:", path])
        return tf.strings.split(text, "\n")

    def _part(self, index):
        """Returns a dataset with the text of one span, without its last line end."""
        start, end = self._start[index], self._end[index]
        record = tf.data.FixedLengthRecordDataset(
            self._path[index],
            record_bytes=end - start,
            header_bytes=start,
            footer_bytes=self._size[index] - end,
        )
        blank = tf.where(self._opens[index], "\n", "")
        return record.map(lambda text: blank + _without_last_line_end(text))


def _without_last_line_end(text):
    ends = tf.strings.substr(text, -1, 1) == "\n"
    return tf.strings.substr(text, 0, tf.strings.length(text) - tf.cast(ends, tf.int32))
