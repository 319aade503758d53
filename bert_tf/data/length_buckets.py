"""Cuts each batch to the shortest of a few lengths that fits its longest row.

Only padding is cut off, and padding does not affect the other positions, so the losses
stay the same up to rounding. With dropout, a batch of a different length has different
dropout masks, because they depend on the index of an element within its row.
"""

from collections.abc import Sequence

import tensorflow as tf

from bert_tf.data import schema as schema_module


def check(length_buckets: Sequence[int]) -> None:
    """Raises a ValueError if a length is less than 1."""
    if any(bucket < 1 for bucket in length_buckets):
        raise ValueError(
            f"length_buckets: expected lengths of at least 1, got {length_buckets}."
        )


def cut(dataset: tf.data.Dataset, *, length_buckets: Sequence[int]) -> tf.data.Dataset:
    """Returns the batches with shorter sequence columns.

    Args:
        dataset: dicts of columns. Those of `schema.SEQUENCE_COLUMNS` have the shape
            [..., S] with a static S. Queries beside their passages
            (`schema.QUERY_COLUMNS`) have a length of their own.
        length_buckets: the lengths. S is always one of them; longer ones are ignored.

    Returns:
        The dicts with columns [..., bucket]; all rows of a batch share one bucket.
    """

    def trim(features):
        trimmed = dict(features)
        for mask, names in _COLUMNS_OF_MASK.items():
            if mask in features:
                length = _bucket(features[mask] > 0, length_buckets)
                for name in features.keys() & set(names):
                    trimmed[name] = features[name][..., :length]
        return trimmed

    return dataset.map(trim)


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


_COLUMNS_OF_MASK = {
    "input_mask": schema_module.SEQUENCE_COLUMNS,
    "query_input_mask": schema_module.QUERY_COLUMNS,
}
