"""Batches cut to the smallest of a few lengths that holds their longest row.

Only padding is cut off, and padding has no part in what a model says of the other
places, so losses stay what they were, up to rounding. Dropout masks follow the number
of an element within its example and that depends on the row's length, so with dropout
on a batch of another length has other masks, as good as the first ones.
"""

from collections.abc import Sequence

import tensorflow as tf

from bert_tf.data import schema as schemas


def check(length_buckets: Sequence[int]) -> None:
    """Raises ValueError for lengths that cannot be."""
    if any(bucket < 1 for bucket in length_buckets):
        raise ValueError(
            f"length_buckets: expected lengths of at least 1, got {length_buckets}."
        )


def cut(
    dataset: tf.data.Dataset, *, full_length: int, length_buckets: Sequence[int]
) -> tf.data.Dataset:
    """Returns the batches with shorter sequence columns.

    Args:
        dataset: dicts of `input_ids`, `input_mask` and others; those of
            `schema.SEQUENCE_COLUMNS` are [..., S].
        full_length: S, always a bucket.
        length_buckets: the other lengths; longer ones than S are of no use here.

    Returns:
        The dicts with [..., bucket], the same one for all rows of a batch.
    """
    shorter = {bucket for bucket in length_buckets if bucket < full_length}
    if not shorter:
        return dataset
    buckets = tf.constant(sorted({*shorter, full_length}), tf.int32)

    def trim(features):
        mask = features["input_mask"] > 0
        used = tf.reduce_any(mask, axis=list(range(mask.shape.rank - 1)))  # [S]
        longest = tf.reduce_max(tf.where(used, tf.range(1, full_length + 1), 0))
        bucket = tf.reduce_min(tf.boolean_mask(buckets, buckets >= longest))
        return {
            name: values[..., :bucket] if name in schemas.SEQUENCE_COLUMNS else values
            for name, values in features.items()
        }

    return dataset.map(trim)
