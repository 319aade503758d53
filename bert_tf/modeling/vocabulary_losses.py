"""Cross-entropy over the whole vocabulary at very many positions, a part at a time.

Logits of every position at once would be the largest tensor of a model: 500 MB for 32
sequences of 128 pieces and a vocabulary of 30,522. Here a few hundred rows of them are
there at a time, and the backward pass computes them again.

Shape letters: R rows, C rows of a chunk, H hidden, V vocabulary.
"""

from keras import ops

from bert_tf.modeling import numerics

ROWS_AT_A_TIME = 512


def losses(vectors, table, bias, labels, *, rows_at_a_time=ROWS_AT_A_TIME):
    """Returns each row's cross-entropy, float32 [R].

    Logits are vectors @ transposed table + bias; the products are of the vectors'
    dtype, softmax and sums of gradients are float32.

    Args:
        vectors: [R, H].
        table: [V, H], a tensor of the same dtype.
        bias: [V], a tensor of the same dtype.
        labels: int32 [R].
        rows_at_a_time: int, C.
    """

    @ops.custom_gradient
    def compute(vectors, table, bias):
        chunks = _Chunks(vectors, labels, rows_at_a_time)

        def backward(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return _gradients(chunks, table, bias, upstream)

        return _row_by_row(numerics.cross_entropy, chunks, table, bias), backward

    return compute(vectors, table, bias)


def hits(vectors, table, bias, labels, *, rows_at_a_time=ROWS_AT_A_TIME):
    """Returns float32 [R]: 1 where a row's highest logit is the label's, else 0.

    It has no gradient. A graph that makes no use of it does not compute it.

    Args:
        vectors, table, bias, labels, rows_at_a_time: as for `losses`.
    """

    def is_hit(logits, labels):
        return ops.cast(ops.equal(ops.argmax(logits, axis=-1), labels), "float32")

    chunks = _Chunks(ops.stop_gradient(vectors), labels, rows_at_a_time)
    table, bias = ops.stop_gradient(table), ops.stop_gradient(bias)
    return _row_by_row(is_hit, chunks, table, bias)


class _Chunks:
    """Rows in parts of one size; what fills the last part up is of no row."""

    def __init__(self, vectors, labels, size):
        self.num_rows = ops.shape(vectors)[0]
        self.width = vectors.shape[1]
        self.size = size
        self.count = (self.num_rows + size - 1) // size
        self.vectors = self.filled(vectors)
        self.labels = self.filled(labels)

    def filled(self, rows):
        """Returns rows, up to a multiple of the size."""
        padding = ops.zeros((self.size, *rows.shape[1:]), dtype=rows.dtype)
        return ops.concatenate([rows, padding], axis=0)

    def take(self, rows, index):
        """Returns one part of what `filled` gave."""
        start = [index * self.size] + [0] * (len(rows.shape) - 1)
        return ops.slice(rows, start, (self.size, *rows.shape[1:]))

    def put(self, rows, index, part):
        """Returns rows with one part replaced."""
        places = index * self.size + ops.arange(self.size, dtype="int32")
        return ops.scatter_update(rows, places[:, None], part)

    def logits(self, index, table, bias):
        """Returns float32 [C, V]."""
        part = self.take(self.vectors, index)
        logits = ops.add(ops.matmul(part, ops.transpose(table)), bias)
        return ops.cast(logits, "float32")


def _row_by_row(score, chunks, table, bias):
    """Returns float32 [R]: score(logits, labels) of every part's rows."""

    def add_part(index, scores):
        logits = chunks.logits(index, table, bias)
        part = score(logits, chunks.take(chunks.labels, index))
        return chunks.put(scores, index, part)

    scores = ops.zeros((chunks.num_rows + chunks.size,), dtype="float32")
    return ops.fori_loop(0, chunks.count, add_part, scores)[: chunks.num_rows]


def _gradients(chunks, table, bias, upstream):
    """Returns the gradients of vectors, table and bias for that of the losses, [R]."""
    dtype = table.dtype
    upstream = chunks.filled(upstream)

    def add_part(index, sums):
        of_vectors, of_table, of_bias = sums
        probabilities = ops.softmax(chunks.logits(index, table, bias), axis=-1)
        labels = chunks.take(chunks.labels, index)
        rows = ops.arange(chunks.size, dtype="int32")
        of_label = ops.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
        errors = ops.scatter_update(
            probabilities, ops.stack([rows, labels], axis=1), of_label - 1.0
        )
        errors = errors * chunks.take(upstream, index)[:, None]  # [C, V]
        narrow = ops.cast(errors, dtype)
        part = ops.matmul(narrow, table)  # [C, H]
        vectors = chunks.take(chunks.vectors, index)
        grown = ops.matmul(ops.transpose(narrow), vectors)  # [V, H]
        return (
            chunks.put(of_vectors, index, part),
            of_table + ops.cast(grown, "float32"),
            of_bias + ops.sum(errors, axis=0),
        )

    sums = (
        ops.zeros_like(chunks.vectors),
        ops.zeros(table.shape, dtype="float32"),
        ops.zeros(bias.shape, dtype="float32"),
    )
    of_vectors, of_table, of_bias = ops.fori_loop(0, chunks.count, add_part, sums)
    return (
        of_vectors[: chunks.num_rows],
        ops.cast(of_table, dtype),
        ops.cast(of_bias, dtype),
    )
