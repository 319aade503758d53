"""Cross-entropy over the vocabulary at every position, computed in chunks.

All logits at once would be the largest tensor of a model: 500 MB for 32 sequences of
128 pieces and a vocabulary of 30,522. Here a few hundred rows of them exist at a time,
and the backward pass computes them again: a fourth matrix product for every three.

Shape letters: R rows, C rows of a chunk, H hidden, V vocabulary.
"""

from collections.abc import Callable

from keras import ops

from bert_tf.modeling import numerics

Tensor = numerics.Tensor
CHUNK_SIZE = 512


def losses_and_hits(
    rows: tuple[Tensor, Tensor, Tensor, Tensor],
    cross_entropy: Callable[[Tensor, Tensor], Tensor],
    *,
    chunk_size: int = CHUNK_SIZE,
) -> tuple[Tensor, Tensor]:
    """Returns what `plain.Plain.vocabulary_losses` does.

    Products are computed in the vectors' dtype, the softmax and sums of gradients in
    float32. A graph that does not use the hits does not compute them.

    Args:
        rows: vectors [R, H], table [V, H], bias [V] and labels [R].
        cross_entropy: from logits [C, V] and labels [C] to losses, float32 [C].
        chunk_size: C.
    """
    vectors, table, bias, labels = rows

    @ops.custom_gradient
    def losses(vectors, table, bias):
        chunks = _Chunks(vectors, labels, chunk_size)

        def backward(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return _gradients(chunks, table, bias, upstream)

        return _score_rows(cross_entropy, chunks, table, bias), backward

    def is_hit(logits, labels):
        return ops.cast(ops.equal(ops.argmax(logits, axis=-1), labels), "float32")

    chunks = _Chunks(ops.stop_gradient(vectors), labels, chunk_size)
    hits = _score_rows(
        is_hit, chunks, ops.stop_gradient(table), ops.stop_gradient(bias)
    )
    return losses(vectors, table, bias), hits


class _Chunks:
    """Rows in chunks of one size, the last of which is padded."""

    def __init__(self, vectors: Tensor, labels: Tensor, size: int):
        self.num_rows = ops.shape(vectors)[0]
        self.width = vectors.shape[1]
        self.size = size
        self.count = (self.num_rows + size - 1) // size
        self.vectors = self.padded(vectors)
        self.labels = self.padded(labels)

    def padded(self, rows: Tensor) -> Tensor:
        """Returns rows and `size` more, so that every chunk is whole."""
        padding = ops.zeros((self.size, *rows.shape[1:]), dtype=rows.dtype)
        return ops.concatenate([rows, padding], axis=0)

    def take(self, rows: Tensor, index: int) -> Tensor:
        """Returns one chunk of padded rows."""
        start = [index * self.size] + [0] * (len(rows.shape) - 1)
        return ops.slice(rows, start, (self.size, *rows.shape[1:]))

    def put(self, rows: Tensor, index: int, chunk: Tensor) -> Tensor:
        """Returns rows with one chunk replaced."""
        indices = index * self.size + ops.arange(self.size, dtype="int32")
        return ops.scatter_update(rows, indices[:, None], chunk)

    def logits(self, index: int, table: Tensor, bias: Tensor) -> Tensor:
        """Returns float32 [C, V]."""
        chunk = self.take(self.vectors, index)
        logits = ops.add(ops.matmul(chunk, ops.transpose(table)), bias)
        return ops.cast(logits, "float32")


def _score_rows(
    score: Callable[[Tensor, Tensor], Tensor],
    chunks: _Chunks,
    table: Tensor,
    bias: Tensor,
) -> Tensor:
    """Returns float32 [R]: score(logits, labels) of the rows of every chunk."""

    def add_chunk(index, scores):
        logits = chunks.logits(index, table, bias)
        chunk = score(logits, chunks.take(chunks.labels, index))
        return chunks.put(scores, index, chunk)

    scores = ops.zeros((chunks.num_rows + chunks.size,), dtype="float32")
    return ops.fori_loop(0, chunks.count, add_chunk, scores)[: chunks.num_rows]


def _gradients(chunks, table, bias, upstream):
    """Returns the gradients of vectors, table and bias for that of the losses, [R]."""
    dtype = table.dtype
    upstream = chunks.padded(upstream)

    def add_chunk(index, sums):
        of_vectors, of_table, of_bias = sums
        probabilities = ops.softmax(chunks.logits(index, table, bias), axis=-1)
        labels = chunks.take(chunks.labels, index)
        rows = ops.arange(chunks.size, dtype="int32")
        of_labels = ops.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
        errors = ops.scatter_update(
            probabilities, ops.stack([rows, labels], axis=1), of_labels - 1.0
        )
        errors = errors * chunks.take(upstream, index)[:, None]  # [C, V]
        narrow = ops.cast(errors, dtype)
        own_vectors = ops.matmul(narrow, table)  # [C, H]
        vectors = chunks.take(chunks.vectors, index)
        own_table = ops.matmul(ops.transpose(narrow), vectors)  # [V, H]
        return (
            chunks.put(of_vectors, index, own_vectors),
            of_table + ops.cast(own_table, "float32"),
            of_bias + ops.sum(errors, axis=0),
        )

    sums = (
        ops.zeros_like(chunks.vectors),
        ops.zeros(table.shape, dtype="float32"),
        ops.zeros(bias.shape, dtype="float32"),
    )
    of_vectors, of_table, of_bias = ops.fori_loop(0, chunks.count, add_chunk, sums)
    return (
        of_vectors[: chunks.num_rows],
        ops.cast(of_table, dtype),
        ops.cast(of_bias, dtype),
    )
