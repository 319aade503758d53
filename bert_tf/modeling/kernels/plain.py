"""What each kernel computes, in `keras.ops` and as its formula is written.

Softmax, layer normalization and losses run in float32, regardless of the model's dtype.
bfloat16 has 8 significant bits: in a sum over 512 positions or 30,522 word pieces,
small terms would vanish, and a loss would have only two or three significant digits.

Shape letters: B batch, H hidden, N heads, D = H / N, F from-sequence, T to-sequence, P
chosen positions, V vocabulary. Vectors are rows, [B * T, H], so that every product with
weights is a product of two matrices.
"""

import copy
from collections.abc import Callable
from typing import Any

from keras import ops

from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks

Tensor = numerics.Tensor
Dropout = dropout_masks.Dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": lambda x: ops.gelu(x, approximate=True),
    "gelu_erf": lambda x: ops.gelu(x, approximate=False),
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": lambda x: x,
}


class Sequences:
    """The positions of a batch that a layer computes: what they see, their dropout.

    Args:
        visible: int32 [B, T], 1 for positions that all others see; or [B, F, T], 1
            where position F sees position T.
        keys: uint32 [B], from `dropout_masks.keys_of_examples`; None: no dropout.
    """

    positions: Tensor | None = None  # int32 [B, P], from `at`; None: all.

    def __init__(self, visible: Tensor, keys: Tensor | None):
        self.visible = visible
        self.keys = keys
        self.length = ops.shape(visible)[-1]  # T.
        self.num_queries = self.length  # F.

    def at(self, positions: Tensor) -> "Sequences":
        """Returns these sequences where only some positions are computed.

        Args:
            positions: int32 [B, P], from 0 to T - 1.
        """
        chosen = copy.copy(self)
        chosen.positions = positions
        chosen.num_queries = ops.shape(positions)[1]
        if len(self.visible.shape) == 3:
            rows = ops.reshape(self.visible, (-1, self.length))  # [B * F, T]
            chosen.visible = gather_positions(rows, positions, self.length)
        return chosen

    def select(self, x: Tensor) -> Tensor:
        """Returns the rows of [B * T, H] that are computed."""
        return x

    def put_back(self, x: Tensor) -> Tensor:
        """Returns [B * T, H] of what `select` returned."""
        return x

    def output(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Returns a layer's result as [B, T, H], and the rows for the next layer.

        With `positions`, the first is [B, P, H]. The second is made of the first, so
        that gradients with respect to the outputs of inner layers exist.
        """
        vectors = ops.reshape(x, (-1, self.num_queries, x.shape[-1]))
        return vectors, ops.reshape(vectors, (-1, x.shape[-1]))

    def queries(self, x: Tensor) -> Tensor:
        """Returns the rows that act as queries, given those of all positions."""
        if self.positions is None:
            return x
        chosen = gather_positions(self.put_back(x), self.positions, self.length)
        return ops.reshape(chosen, (-1, x.shape[-1]))  # [B * P, H]

    def dropout(self, site: int, rate: float) -> Dropout | None:
        """Returns the dropout of rows at a place of the model; None: no dropout."""
        return dropout_masks.at(self.keys, site, rate)

    def dropout_of_weights(self, site: int, rate: float) -> Dropout | None:
        """Returns the dropout of attention weights, [B, N, F, T]."""
        return dropout_masks.at(self.keys, site, rate)


def gather_positions(vectors: Tensor, positions: Tensor, length: Any) -> Tensor:
    """Returns the vectors at some positions of each sequence, [B, P, H].

    Args:
        vectors: [B * S, H].
        positions: int32 [B, P], from 0 to S - 1.
        length: S, integer.
    """
    rows = ops.arange(ops.shape(positions)[0], dtype="int32") * length  # [B]
    positions = ops.cast(positions, "int32") + ops.expand_dims(rows, -1)
    # The reshape makes the gradient dense, as in `numerics.lookup`.
    vectors = ops.reshape(vectors, ops.shape(vectors))
    return ops.take(vectors, positions, axis=0)


class Plain:
    """The kernels that a model calls. A layer is passed to those that use its weights.

    Results have the dtype of the first tensor, unless a kernel says otherwise.
    """

    compute_bits = staticmethod(dropout_masks.bits)

    def sequences(self, x: Tensor, visible: Tensor, keys: Tensor | None) -> Sequences:
        """Returns which rows of x [B * T, H] to compute: padding may be left out."""
        return Sequences(visible, keys)

    def dense(self, layer: Any, x: Tensor) -> Tensor:
        """Returns x W + b, [..., O] for x [..., I] and a built dense layer."""
        return layer(x)

    def activation(self, name: str, x: Tensor) -> Tensor:
        """Returns an activation, named as `numerics.activation` returns it."""
        return ops.cast(ACTIVATIONS[name](ops.cast(x, "float32")), x.dtype)

    def dropout(self, x: Tensor, dropout: Dropout | None) -> Tensor:
        """Returns x with some elements set to 0 and the remaining ones scaled up.

        Args:
            x: float [B * n, ...] or [B, ...]: the same number of elements for every
                example, and the elements of an example are adjacent.
            dropout: None returns x itself.
        """
        return dropout_masks.applied(x, dropout, compute_bits=self.compute_bits)

    def norm_and_dropout(
        self, x: Tensor, norm: Any, dropout: Dropout | None = None
    ) -> Tensor:
        """Returns dropout(LayerNorm(x)) in the layer's compute dtype.

        Args:
            x: [rows, H].
            norm: an `embeddings.LayerNorm`.
            dropout: that of `dropout`.
        """
        normalized = layer_norm(x, norm.gamma, norm.beta, norm.epsilon)
        return self.dropout(ops.cast(normalized, norm.compute_dtype), dropout)

    def add_and_norm(
        self, x: Tensor, residual: Tensor, norm: Any, dropout: Dropout | None
    ) -> Tensor:
        """Returns LayerNorm(residual + dropout(x)), [rows, H].

        Args:
            x: [rows, H], a sublayer's result.
            residual: [rows, H], the sublayer's input.
            norm: an `embeddings.LayerNorm`.
            dropout: that of `dropout`.
        """
        total = residual_sum(x, residual, dropout, compute_bits=self.compute_bits)
        outputs = layer_norm(total, norm.gamma, norm.beta, norm.epsilon)
        return ops.cast(outputs, x.dtype)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        sequences: Sequences,
        *,
        num_heads: int,
        dropout: Dropout | None,
    ) -> Tensor:
        """Returns dropout(softmax(q k^T / sqrt(D) + bias)) v of every head.

        Args:
            query: [B * F, H].
            key, value: [B * T, H].
            sequences: what each position sees.
            num_heads: N.
            dropout: of the weights: it hides one position from another.

        Returns:
            [B * F, H], the heads side by side.
        """
        query = split_heads(query, sequences.num_queries, num_heads)  # [B, N, F, D]
        key = split_heads(key, sequences.length, num_heads)  # [B, N, T, D]
        value = split_heads(value, sequences.length, num_heads)
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))  # [B, N, F, T]
        scores = ops.cast(scores, "float32") * query.shape[-1] ** -0.5
        weights = ops.softmax(scores + numerics.attention_bias(sequences.visible))
        weights = self.dropout(ops.cast(weights, value.dtype), dropout)
        return merge_heads(ops.matmul(weights, value))

    def vocabulary_scores(self, vectors: Tensor, table: Tensor, bias: Tensor) -> Tensor:
        """Returns vectors @ transposed table + bias, [rows, V].

        Args:
            vectors: [rows, H].
            table: [V, H], the same dtype.
            bias: [V], the same dtype.
        """
        return ops.matmul(vectors, ops.transpose(table)) + bias

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Returns the negative log-probability of each label, float32 [rows].

        Args:
            logits: [rows, classes].
            labels: integer [rows].
        """
        logits = ops.cast(logits, "float32")
        labels = ops.expand_dims(ops.cast(labels, "int32"), -1)
        label_logits = ops.take_along_axis(logits, labels, axis=-1)[:, 0]
        return ops.logsumexp(logits, axis=-1) - label_logits

    def vocabulary_losses(
        self, vectors: Tensor, table: Tensor, bias: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the cross-entropy of each row, and whether its label scores highest.

        Args:
            vectors, table, bias: those of `vocabulary_scores`.
            labels: int32 [rows].

        Returns:
            Two float32 [rows]. The second is 1 or 0 and has no gradient.
        """
        logits = self.vocabulary_scores(vectors, table, bias)
        hits = ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels)
        return self.cross_entropy(logits, labels), ops.cast(hits, "float32")


def residual_sum(
    x: Tensor, residual: Tensor, dropout: Dropout | None, *, compute_bits: Any = None
) -> Tensor:
    """Returns residual + dropout(x), rounded once to the dtype of x."""
    if dropout is None:
        return x + residual
    dropped = dropout_masks.dropped(x, dropout, compute_bits=compute_bits)
    return ops.cast(dropped + ops.cast(residual, dropped.dtype), x.dtype)


def mean_of_rows(x: Tensor) -> Tensor:
    """Returns [..., 1]: the mean over the last axis."""
    return ops.mean(x, axis=-1, keepdims=True)


def layer_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    epsilon: float,
    *,
    mean: Callable[[Tensor], Tensor] = mean_of_rows,
) -> Tensor:
    """Returns x normalized over its last axis, float32 [rows, H].

    Args:
        x: [rows, H], any float dtype.
        gamma: [H], any float dtype.
        beta: [H], any float dtype.
        epsilon: added to the variance.
        mean: computes `mean_of_rows`.
    """
    x = ops.cast(x, "float32")
    center, scale = moments(x, epsilon, mean=mean)
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    return (x - center) * scale * gamma + beta


def moments(
    x: Tensor, epsilon: float, *, mean: Callable[[Tensor], Tensor] = mean_of_rows
) -> tuple[Tensor, Tensor]:
    """Returns mean and 1 / sqrt(variance + epsilon) of rows: two float32 [rows, 1]."""
    center = mean(x)
    return center, ops.rsqrt(mean(ops.square(x - center)) + epsilon)


def split_heads(x: Tensor, length: Any, num_heads: int) -> Tensor:
    """Returns [B, N, S, D] of [B * S, H]."""
    return ops.transpose(heads_of(x, length, num_heads), (0, 2, 1, 3))


def heads_of(x: Tensor, length: Any, num_heads: int) -> Tensor:
    """Returns [B, S, N, D] of [B * S, H]."""
    return ops.reshape(x, (-1, length, num_heads, x.shape[-1] // num_heads))


def merge_heads(context: Tensor) -> Tensor:
    """Returns [B * S, H] of [B, N, S, D]."""
    width = context.shape[1] * context.shape[3]
    return ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (-1, width))
