"""Ragged ids to the rows that a model reads, and its answer to many rows, in a graph.

Rows are cut by slicing ragged ids: TensorFlow Text's trimmers are ops that some servers
lack.

Shape letters: B batch, S sequence.
"""

import dataclasses

import tensorflow as tf

from bert_tf.fine_tuning import predictor as fine_tuning_predictor


def pack_ragged(ids_a, ids_b=None, *, max_seq_length, cls_id, sep_id):
    """Returns the encoder's features, as `data.packing.pack`, from ids in a graph.

    Rows are padded to the longest one, which is faster to serve and gives the same.

    Args:
        ids_a: int32 RaggedTensor [B, pieces].
        ids_b: the same for second texts, or None.
        max_seq_length: int; longer rows are cut, of a pair the longer text first.
        cls_id: int.
        sep_id: int.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [B, S], S at most
        `max_seq_length`.
    """
    num_special = 2 if ids_b is None else 3
    limit = tf.constant(max_seq_length - num_special, tf.int64)
    lengths_a = ids_a.row_lengths()
    if ids_b is None:
        keep_a = tf.minimum(lengths_a, limit)
    else:
        keep_a, keep_b = _kept_of_pair(lengths_a, ids_b.row_lengths(), limit)
        ids_b = cut(ids_b, keep_b)
    return framed(cut(ids_a, keep_a), ids_b, cls_id=cls_id, sep_id=sep_id)


def pack_windows(ids_a, ids_b=None, *, max_seq_length, doc_stride, cls_id, sep_id):
    """Returns features as `classification.windows.pack` with a stride, in a graph.

    Args:
        ids_a: int32 RaggedTensor [B, pieces].
        ids_b: the same for second texts, or None.
        max_seq_length: int.
        doc_stride: int, pieces from the start of a window to that of the next one.
        cls_id: int.
        sep_id: int.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [rows, S], and int64 [rows],
        the number of the text that each row is of.
    """
    lengths_a = ids_a.row_lengths()
    if ids_b is None:
        slides = _slides(lengths_a, max_seq_length - 2, doc_stride)
        ids_a = _part(ids_a, slides.text, slides.start, slides.length)
        return framed(ids_a, cls_id=cls_id, sep_id=sep_id), slides.text
    lengths_b = ids_b.row_lengths()
    room = max_seq_length - 3
    fits = lengths_a + lengths_b <= room
    a_slides = lengths_a > lengths_b
    # The shorter text is whole in each window, as far as half of the row holds it.
    kept = tf.minimum(tf.minimum(lengths_a, lengths_b), room // 2)
    longer = tf.maximum(lengths_a, lengths_b)
    slides = _slides(longer, tf.where(fits, longer, room - kept), doc_stride)
    kept = tf.where(fits, tf.minimum(lengths_a, lengths_b), kept)
    kept = tf.gather(kept, slides.text)
    is_a = tf.gather(a_slides, slides.text)
    ids_a, ids_b = (
        _part(
            ids,
            slides.text,
            tf.where(is_slid, slides.start, 0),
            tf.where(is_slid, slides.length, kept),
        )
        for ids, is_slid in ((ids_a, is_a), (ids_b, ~is_a))
    )
    return framed(ids_a, ids_b, cls_id=cls_id, sep_id=sep_id), slides.text


def framed(ids_a, ids_b=None, *, cls_id, sep_id):
    """Returns the features of [CLS] A [SEP] or [CLS] A [SEP] B [SEP], none of it cut.

    Args:
        ids_a: int32 RaggedTensor [B, pieces].
        ids_b: the same, or None.
        cls_id: int.
        sep_id: int.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [B, S].
    """
    cls = tf.fill([ids_a.nrows(), 1], cls_id)
    sep = tf.fill([ids_a.nrows(), 1], sep_id)
    parts = [cls, ids_a, sep]
    if ids_b is not None:
        parts += [ids_b, sep]
    rows = tf.concat(parts, axis=1)
    input_ids = rows.to_tensor()  # [B, S]
    columns = tf.range(tf.shape(input_ids, tf.int64)[1])[tf.newaxis]
    is_real = columns < rows.row_lengths()[:, tf.newaxis]
    is_second = is_real & (columns >= ids_a.row_lengths()[:, tf.newaxis] + 2)
    return {
        "input_ids": input_ids,
        "input_mask": tf.cast(is_real, tf.int32),
        "segment_ids": tf.cast(is_second, tf.int32),
    }


def cut(ids, lengths):
    """Returns the first ids of each row of a RaggedTensor [B, pieces].

    Args:
        ids: int32 RaggedTensor.
        lengths: int64 [B], none of them greater than its row is long.
    """
    positions = tf.ragged.range(ids.row_lengths()).flat_values
    is_kept = positions < tf.repeat(lengths, ids.row_lengths())
    values = tf.boolean_mask(ids.flat_values, is_kept)
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)


def in_parts(function, features, *, rank):
    """Returns what a function gives for many rows, some rows at a time.

    Args:
        function: from features of R rows to a float32 tensor [R, ...].
        features: dict of int32 [B, S]; B is at least 1.
        rank: int, of what the function returns.

    Returns:
        float32 [B, ...].
    """
    num_rows = tf.shape(features["input_ids"])[0]
    num_parts = -(-num_rows // fine_tuning_predictor.ROWS_PER_CALL)
    # Equal parts: the fewest rows that are there only to fill the last one.
    height = -(-num_rows // tf.maximum(num_parts, 1))
    padding = [[0, num_parts * height - num_rows], [0, 0]]
    shape = [num_parts, height, tf.shape(features["input_ids"])[1]]
    found = tf.map_fn(
        function,
        {
            name: tf.reshape(tf.pad(column, padding), shape)
            for name, column in features.items()
        },
        parallel_iterations=1,
        fn_output_signature=tf.TensorSpec([None] * rank, tf.float32),
    )
    whole = tf.concat([[num_parts * height], tf.shape(found)[2:]], axis=0)
    return tf.reshape(found, whole)[:num_rows]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Slides:
    """Windows over texts, int64 [rows] each."""

    text: tf.Tensor  # Number of its text.
    start: tf.Tensor  # Its first piece.
    length: tf.Tensor  # Its pieces.


def _slides(lengths, room, doc_stride):
    """Returns the windows of `room` pieces over texts of some lengths, int64 [B]."""
    room = tf.broadcast_to(tf.cast(room, tf.int64), tf.shape(lengths))
    stride = tf.maximum(tf.minimum(tf.cast(doc_stride, tf.int64), room), 1)
    counts = 1 - (-tf.maximum(lengths - room, 0) // stride)
    text = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)
    start = tf.ragged.range(counts).values * tf.gather(stride, text)
    left = tf.gather(lengths, text) - start
    return _Slides(
        text=text, start=start, length=tf.minimum(tf.gather(room, text), left)
    )


def _part(ids, text, start, length):
    """Returns pieces start to start + length of some texts, ragged [rows, pieces]."""
    first = tf.gather(ids.row_starts(), text) + start
    places = tf.ragged.range(first, first + length)
    return places.with_values(tf.gather(ids.values, places.values))


def _kept_of_pair(lengths_a, lengths_b, limit):
    """Where `packing.truncate_pair` ends: the longer text gives way, B when equal."""
    cut_b = tf.minimum(lengths_b, tf.maximum(limit // 2, limit - lengths_a))
    fits = lengths_a + lengths_b <= limit
    return tf.where(fits, lengths_a, limit - cut_b), tf.where(fits, lengths_b, cut_b)
