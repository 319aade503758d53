"""Kernels whose operations run one by one, as TensorFlow runs them without XLA.

Gradients are written out where derived ones take longer or are less accurate. In a
training step on a CPU, XLA also compiles the chains between products (`islands`), and
padding is left out (`computed_rows`).

Shape letters: those of `plain`.
"""

import functools
import math
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import computed_rows
from bert_tf.modeling.kernels import islands
from bert_tf.modeling.kernels import plain

Tensor = plain.Tensor
Dropout = plain.Dropout

# Below this size, compiling costs more time than it saves, even in a long run.
MIN_ELEMENTS = 1 << 18
# Batches that are cut to their longest sequence have at least about this many pieces
# per sequence.
SHORT_LENGTH = 32
# Rows whose logits exist at a time in `vocabulary_losses`.
CHUNK_SIZE = 512


class Cpu(plain.Plain):
    """CPUs, and GPUs without XLA.

    The other implementations inherit the gradients that are written out here, which
    take less time and memory on every device.

    Args:
        has_islands: whether chains of operations are compiled; needs TensorFlow.
        num_examples: examples per batch, if the length of sequences varies. The size
            of an argument is then that for sequences of `SHORT_LENGTH`. XLA compiles an
            island once for each size that occurs, so there should be few. None: islands
            whose first argument has an axis of unknown size are not compiled.
    """

    def __init__(self, *, has_islands: bool = False, num_examples: int | None = None):
        self._has_islands = has_islands
        self._num_examples = num_examples

    def compiles(self, tensor: Tensor) -> bool:
        """Returns whether an island with `tensor` as first argument is compiled."""
        if not self._has_islands:
            return False
        size = math.prod(n for n in tensor.shape if n is not None)
        num_unknown = sum(n is None for n in tensor.shape)
        if num_unknown == 0:
            return size >= MIN_ELEMENTS
        if self._num_examples is None:
            return False
        # [B, S] and [B * S, H] contain one length, attention scores [B, N, S, S] two.
        # B is unknown in the last two.
        has_examples = tensor.shape[0] is None
        num_lengths = max(1, num_unknown - has_examples)
        size *= SHORT_LENGTH**num_lengths * (self._num_examples if has_examples else 1)
        return size >= MIN_ELEMENTS

    def sequences(
        self, x: Tensor, visible: Tensor, keys: Tensor | None
    ) -> plain.Sequences:
        """See `Plain.sequences`.

        Leaving padding out saves time where each batch is cut to its longest sequence.
        Elsewhere, shapes must not depend on the values in a batch, or the dropout masks
        of single rows would not be compiled and would be slow.
        """
        is_same_for_all = len(visible.shape) == 2
        if is_same_for_all and x.shape[0] is None and self.compiles(x):
            return computed_rows.RealRows(visible, keys)
        return super().sequences(x, visible, keys)

    def dense(self, layer: Any, x: Tensor) -> Tensor:
        """See `Plain.dense`. In bfloat16, the gradient of the bias is accurate.

        TensorFlow's own kernel sums over the rows in bfloat16. For 4,096 rows, its
        relative error is 7 % if their signs are random, and more than one half if most
        signs are equal. A product with ones has float32 sums.
        """
        is_own = layer.compute_dtype != "bfloat16" or layer.bias is None
        if is_own or layer.quantization_mode is not None:
            return layer(x)
        kernel, bias = (ops.cast(w, "bfloat16") for w in (layer.kernel, layer.bias))
        rows = ops.reshape(ops.cast(x, "bfloat16"), (-1, kernel.shape[0]))
        outputs = _plus_bias(ops.matmul(rows, kernel), bias)
        if len(x.shape) == 2:
            return outputs
        return ops.reshape(outputs, (*ops.shape(x)[:-1], kernel.shape[1]))

    def activation(self, name: str, x: Tensor) -> Tensor:
        """See `Plain.activation`."""
        functions = _COMPILED_ACTIVATIONS if self.compiles(x) else _ACTIVATIONS
        return functions[name](x)

    def add_and_norm(
        self, x: Tensor, residual: Tensor, norm: Any, dropout: Dropout | None
    ) -> Tensor:
        """See `Plain.add_and_norm`."""
        compute = islands.add_and_norm if self.compiles(x) else super().add_and_norm
        return compute(x, residual, norm, dropout)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        sequences: plain.Sequences,
        *,
        num_heads: int,
        dropout: Dropout | None,
    ) -> Tensor:
        """See `Plain.attend`. Padding that was left out comes back as zeros."""
        # Queries have fewer elements than scores, so they are divided instead.
        query = query * (query.shape[-1] // num_heads) ** -0.5
        is_whole = sequences.positions is None
        query = sequences.put_back(query) if is_whole else query
        key, value = sequences.put_back(key), sequences.put_back(value)
        keys = plain.heads_of(key, sequences.length, num_heads)
        context = self._weighted_values(
            plain.split_heads(query, sequences.num_queries, num_heads),
            ops.transpose(keys, (0, 2, 3, 1)),  # [B, N, D, T]
            plain.split_heads(value, sequences.length, num_heads),
            sequences,
            dropout,
        )
        return sequences.select(context) if is_whole else context

    def _weighted_values(self, query, key, value, sequences, dropout):
        """Returns the context [B * F, H] of heads; key is [B, N, D, T]."""
        scores = ops.matmul(query, key)  # [B, N, F, T]
        weights = self._dropped_weights(scores, sequences.visible, dropout)
        return plain.merge_heads(ops.matmul(weights, value))

    def _dropped_weights(self, scores, visible, dropout):
        """Returns the attention weights after dropout, in the dtype of the scores."""
        if self.compiles(scores):
            return islands.dropped_weights(scores, visible, dropout)
        weights = ops.softmax(islands.with_bias(scores, visible), axis=-1)
        return self.dropout(ops.cast(weights, scores.dtype), dropout)

    def vocabulary_scores(self, vectors: Tensor, table: Tensor, bias: Tensor) -> Tensor:
        """See `Plain.vocabulary_scores`.

        These are the largest products of a small model. TensorFlow would transpose the
        table's gradient in a pass of its own; for the bias, see `dense`.
        """

        @ops.custom_gradient
        def compute(vectors, table, bias):
            def gradient(upstream):
                return (
                    ops.matmul(upstream, table),
                    ops.matmul(ops.transpose(upstream), vectors),
                    islands.sum_of_rows(upstream),
                )

            # `ops.add`, so that TensorFlow adds the bias within the product.
            return ops.add(ops.matmul(vectors, ops.transpose(table)), bias), gradient

        return compute(vectors, table, bias)

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        """See `Plain.cross_entropy`.

        TensorFlow's own kernel takes three times as long for as many classes as a
        vocabulary has. Only the logits and two numbers per row are kept.
        """
        labels = ops.cast(labels, "int32")
        parts = _COMPILED_PARTS if self.compiles(logits) else _PARTS
        highest_of, log_total_of, gradient_of = parts

        @ops.custom_gradient
        def minus_log_probability(logits):
            highest = highest_of(logits)  # [rows, 1]
            log_total = log_total_of(logits, highest)  # [rows, 1]

            def gradient(upstream):
                return gradient_of(logits, highest, log_total, labels, upstream)

            entries = ops.take_along_axis(logits, labels[:, None], axis=-1)
            below = highest[:, 0] - ops.cast(entries[:, 0], "float32")
            return below + log_total[:, 0], gradient

        return minus_log_probability(logits)

    def vocabulary_losses(
        self, vectors: Tensor, table: Tensor, bias: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        """See `Plain.vocabulary_losses`; computed for `CHUNK_SIZE` rows at a time.

        All logits at once would be the largest tensor of a model: 500 MB for 32
        sequences of 128 pieces and a vocabulary of 30,522. Here the backward pass
        computes them again: a fourth matrix product for every three.
        """
        compute = super().vocabulary_losses
        num_rows, width = ops.shape(vectors)[0], vectors.shape[1]
        padding = -num_rows % CHUNK_SIZE
        # In bfloat16, the gradients of the chunks would be added in bfloat16.
        weights = [ops.cast(one, "float32") for one in (table, bias)]

        @keras.remat
        def of_chunk(vectors, labels, *weights):
            table, bias = (ops.cast(one, vectors.dtype) for one in weights)
            return compute(vectors, table, bias, labels)

        chunks = (
            ops.reshape(
                ops.pad(vectors, ((0, padding), (0, 0))), (-1, CHUNK_SIZE, width)
            ),
            ops.reshape(ops.pad(labels, ((0, padding),)), (-1, CHUNK_SIZE)),
        )
        results = ops.map(lambda chunk: of_chunk(*chunk, *weights), chunks)
        losses, hits = (ops.reshape(one, (-1,))[:num_rows] for one in results)
        return losses, hits


def gelu(x: Tensor) -> Tensor:
    """Returns the tanh form of GELU.

    It is computed as x * sigmoid(u), u = 2 sqrt(2/pi) (x + 0.044715 x^3): the same
    function in fewer passes over x. It runs in float32, which is faster on CPUs than
    bfloat16, and the backward pass needs nothing but x.
    """
    linear, cubic = (
        2 * numerics.GELU_SCALE,
        2 * numerics.GELU_SCALE * numerics.GELU_CUBIC,
    )

    @ops.custom_gradient
    def compute(x):
        def gradient(upstream):
            wide = ops.cast(x, "float32")
            square = ops.square(wide)
            gate = ops.sigmoid(wide * (linear + cubic * square))
            output = wide * gate
            slope = gate + (output - output * gate) * (linear + 3 * cubic * square)
            return ops.cast(ops.cast(upstream, "float32") * slope, upstream.dtype)

        wide = ops.cast(x, "float32")
        gate = ops.sigmoid(wide * (linear + cubic * ops.square(wide)))
        return ops.cast(wide * gate, x.dtype), gradient

    return compute(x)


_ACTIVATIONS = {**plain.ACTIVATIONS, "gelu": gelu}
_COMPILED_ACTIVATIONS = {
    **_ACTIVATIONS,
    "gelu": islands.island(gelu),
    "gelu_erf": islands.island(plain.ACTIVATIONS["gelu_erf"]),
}


@ops.custom_gradient
def _plus_bias(y, bias):
    def gradient(upstream):
        return upstream, islands.sum_of_rows(upstream)

    # `ops.add` instead of `+`, so that TensorFlow adds the bias within the product.
    return ops.add(y, bias), gradient


def _reduce_rows(reduce, x, function=lambda columns: columns):
    return reduce(function(x), axis=-1, keepdims=True)


def _highest(logits, reduce_rows=_reduce_rows):
    # In a single island, XLA would write all logits to memory as float32. For the same
    # reason, the maximum comes before the cast.
    return ops.cast(reduce_rows(ops.max, logits), "float32")


def _log_total(logits, highest, reduce_rows=_reduce_rows):
    """Returns the logarithm of the sum of exp(logits - highest).

    The sum of both parts would lose digits of the second one if logits are large.
    """
    return ops.log(
        reduce_rows(
            ops.sum, logits, lambda part: ops.exp(ops.cast(part, "float32") - highest)
        )
    )


def _cross_entropy_gradient(logits, highest, log_total, labels, upstream):
    probabilities = ops.exp(ops.cast(logits, "float32") - highest - log_total)
    errors = probabilities - ops.cast(_is_label(logits, labels), "float32")
    return ops.cast(errors * upstream[:, None], logits.dtype)


def _is_label(logits, labels):
    """Returns bool [rows, classes]: True at each row's label."""
    classes = ops.arange(ops.shape(logits)[-1], dtype="int32")
    return ops.equal(classes[None, :], labels[:, None])


_PARTS = (_highest, _log_total, _cross_entropy_gradient)
_COMPILED_PARTS = tuple(
    islands.inner_island(part)
    for part in (
        functools.partial(_highest, reduce_rows=islands.reduce_rows),
        functools.partial(_log_total, reduce_rows=islands.reduce_rows),
        _cross_entropy_gradient,
    )
)
