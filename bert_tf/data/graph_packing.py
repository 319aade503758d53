"""Packs ragged ids into a model's input rows, in a graph.

`packing` does the same in Python: a SavedModel cannot call Python, and `predict` and
the readers of tables would otherwise wait for TensorFlow to trace a graph.

Ids are truncated by slicing ragged tensors and not by TensorFlow Text's trimmers,
because some servers lack those ops.

Shape letters: B batch, S sequence.
"""

import dataclasses

import tensorflow as tf

from bert_tf.data import packing


def pack_ragged(
    ids_a: tf.RaggedTensor,
    ids_b: tf.RaggedTensor | None = None,
    *,
    max_seq_length: int,
    cls_id: int,
    sep_id: int,
    longer_keeps_more: bool = False,
    length: int | None = None,
) -> dict[str, tf.Tensor]:
    """Returns the encoder's features; does what `data.packing.pack` does in Python.

    By default, rows are padded only to the longest one: the answers are the same, only
    faster.

    Args:
        ids_a: int32 [B, pieces].
        ids_b: the same for the second texts, or None.
        max_seq_length: longer rows are truncated; of a pair, the longer text first.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
        longer_keeps_more: whether a pair is truncated by `packing.truncate_longer`.
        length: pads all rows to this length; None: to the longest row.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [B, S], where S is `length`, or
        at most `max_seq_length`.
    """
    num_special = 2 if ids_b is None else 3
    limit = tf.constant(max_seq_length - num_special, tf.int64)
    lengths_a = ids_a.row_lengths()
    if ids_b is None:
        keep_a = tf.minimum(lengths_a, limit)
    else:
        kept = _kept_if_longer_keeps_more if longer_keeps_more else _kept_of_pair
        keep_a, keep_b = kept(lengths_a, ids_b.row_lengths(), limit)
        ids_b = cut(ids_b, keep_b)
    return framed(
        cut(ids_a, keep_a), ids_b, cls_id=cls_id, sep_id=sep_id, length=length
    )


def framed(
    ids_a: tf.RaggedTensor,
    ids_b: tf.RaggedTensor | None = None,
    *,
    cls_id: int,
    sep_id: int,
    length: int | None = None,
) -> dict[str, tf.Tensor]:
    """Returns the features of [CLS] A [SEP] or [CLS] A [SEP] B [SEP], not truncated.

    Args:
        ids_a: int32 [B, pieces].
        ids_b: the same, or None.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
        length: pads all rows to this length; None: to the longest row.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [B, S].
    """
    cls = tf.fill([ids_a.nrows(), 1], cls_id)
    sep = tf.fill([ids_a.nrows(), 1], sep_id)
    parts = [cls, ids_a, sep]
    if ids_b is not None:
        parts += [ids_b, sep]
    rows = tf.concat(parts, axis=1)
    input_ids = rows.to_tensor(shape=[None, length])  # [B, S]
    columns = tf.range(tf.shape(input_ids, tf.int64)[1])[tf.newaxis]
    is_real = columns < rows.row_lengths()[:, tf.newaxis]
    is_second = is_real & (columns >= ids_a.row_lengths()[:, tf.newaxis] + 2)
    return {
        "input_ids": input_ids,
        "input_mask": tf.cast(is_real, tf.int32),
        "segment_ids": tf.cast(is_second, tf.int32),
    }


def cut(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Returns the first ids of each row.

    Args:
        ids: int32 [B, pieces].
        lengths: int64 [B], at most the lengths of the rows.
    """
    positions = tf.ragged.range(ids.row_lengths()).flat_values
    is_kept = positions < tf.repeat(lengths, ids.row_lengths())
    values = tf.boolean_mask(ids.flat_values, is_kept)
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """Windows over texts, int64 [rows] each."""

    text: tf.Tensor  # The number of the text.
    start: tf.Tensor  # The first piece.
    length: tf.Tensor  # The number of pieces.


def windows_over(lengths: tf.Tensor, room: tf.Tensor | int, doc_stride: int) -> Windows:
    """Returns windows of `room` pieces over texts of the given lengths, int64 [B]."""
    room = tf.broadcast_to(tf.cast(room, tf.int64), tf.shape(lengths))
    stride = tf.maximum(tf.minimum(tf.cast(doc_stride, tf.int64), room), 1)
    counts = 1 - (-tf.maximum(lengths - room, 0) // stride)
    text = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)
    start = tf.ragged.range(counts).values * tf.gather(stride, text)
    left = tf.gather(lengths, text) - start
    return Windows(
        text=text, start=start, length=tf.minimum(tf.gather(room, text), left)
    )


def best_windows(windows: Windows, row_starts: tf.Tensor) -> tf.Tensor:
    """Returns the window in which each piece has the most context.

    The TensorFlow version of `packing.most_context`.

    Args:
        windows: from `windows_over`.
        row_starts: int64 [B], the index of each text's first piece among the pieces of
            all texts.

    Returns:
        int64 [pieces of all texts], numbers of windows.
    """
    inside = tf.ragged.range(windows.length)  # The pieces of all windows.
    window = inside.value_rowids()
    length = tf.gather(windows.length, window)
    context = tf.minimum(inside.values, length - 1 - inside.values)
    score = tf.cast(context, tf.float64)
    score += packing.CONTEXT_LENGTH_WEIGHT * tf.cast(length, tf.float64)
    first = tf.gather(row_starts, windows.text) + windows.start
    piece = tf.gather(first, window) + inside.values
    total = tf.reduce_max(tf.concat([piece, [-1]], axis=0)) + 1
    best = tf.math.unsorted_segment_max(score, piece, total)
    is_best = score == tf.gather(best, piece)
    # Among equally good windows the first one wins.
    return tf.math.unsorted_segment_min(
        tf.boolean_mask(window, is_best), tf.boolean_mask(piece, is_best), total
    )


def part(
    ids: tf.RaggedTensor, text: tf.Tensor, start: tf.Tensor, length: tf.Tensor
) -> tf.RaggedTensor:
    """Returns pieces start to start + length of the given texts, [rows, pieces]."""
    first = tf.gather(ids.row_starts(), text) + start
    indices = tf.ragged.range(first, first + length)
    return indices.with_values(tf.gather(ids.values, indices.values))


def _kept_if_longer_keeps_more(lengths_a, lengths_b, limit):
    """Returns the lengths that `packing.truncate_longer` leaves."""
    first = _kept_of_pair(lengths_a, lengths_b, limit)
    second = _kept_of_pair(lengths_b, lengths_a, limit)[::-1]
    is_first = lengths_a > lengths_b
    return [tf.where(is_first, *kept) for kept in zip(first, second, strict=True)]


def _kept_of_pair(lengths_a, lengths_b, limit):
    """Returns the lengths that `packing.truncate_pair` leaves."""
    cut_b = tf.minimum(lengths_b, tf.maximum(limit // 2, limit - lengths_a))
    fits = lengths_a + lengths_b <= limit
    return tf.where(fits, lengths_a, limit - cut_b), tf.where(fits, lengths_b, cut_b)
