"""The rows without padding and, in the last layer, those that are read.

Random batches contain short and long texts, so that a third or more of their positions
is padding. Products with kernels, normalization and activations treat every position
separately, so they can leave padding out. Only attention needs the padded layout. And
the last layer is computed only at the positions that the pooler or a head reads.

Shape letters: B batch, S sequence, K sequences per row, P chosen positions, H hidden, R
rows that are kept.
"""

from typing import Any

from keras import ops

from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import plain

# Bounds of the gap between possible R, up to 4096 rows. Each R costs half a second of
# compilation, so few are better, but padding slows small batches down.
_SMALLEST_GAP = 64
_LARGEST_GAP = 256


class RealRows(plain.Sequences):
    """Selects the rows that are not padding, and puts them back.

    Some padding stays, so that the number of rows has few values: it is a multiple of
    64 up to 512 rows, of 128 up to 1024, of 256 up to 4096, of 512 up to 8192, of 1024
    up to 16384, and so on.

    Args:
        visible: integer [B, S], 1 for a real piece.
        keys: see `plain.Sequences`.

    Attributes:
        numbers: int32 [R], the rows among B * S.
    """

    def __init__(self, visible: plain.Tensor, keys: plain.Tensor | None):
        super().__init__(visible, keys)
        is_padding = 1 - ops.reshape(ops.cast(visible, "int32"), (-1,))  # [B * S]
        num_rows = ops.shape(is_padding)[0]
        # At least one row, so that a batch of nothing but padding works too.
        num_real = ops.maximum(num_rows - ops.sum(is_padding), 1)
        sizes = ops.convert_to_tensor(_possible_sizes(), dtype="int32")
        num_kept = ops.min(ops.where(sizes >= num_real, sizes, num_rows))
        num_kept = ops.minimum(num_kept, num_rows)
        self._is_real = ops.expand_dims(1 - is_padding, -1)  # [B * S, 1]
        # Real rows in their order, then padding.
        row = ops.arange(num_rows, dtype="int32")
        sorted_rows = ops.argsort(row + is_padding * num_rows)
        self.numbers = ops.cast(sorted_rows[:num_kept], "int32")
        # The place of each row among those that are kept; R for the others.
        self._places = ops.minimum(ops.argsort(sorted_rows), num_kept)

    def select(self, x: plain.Tensor) -> plain.Tensor:
        """Returns [R, H] of [B * S, H]."""
        return _gathered(x, self._selected, self._put_back)

    def put_back(self, x: plain.Tensor) -> plain.Tensor:
        """Returns [B * S, H] of [R, H]; rows that were left out are 0."""
        return _gathered(x, self._put_back, self._selected)

    def output(self, x: plain.Tensor) -> tuple[plain.Tensor, plain.Tensor]:
        """Returns [B, S, H] of [R, H], where all padding is 0, and x.

        Which padding is among the R rows depends on the other examples of the batch.
        The outputs of an example must not.
        """
        if self.positions is not None:
            return super().output(x)
        vectors, _ = super().output(self.put_back(x) * ops.cast(self._is_real, x.dtype))
        return vectors, x

    def dropout(self, site: int, rate: float) -> plain.Dropout | None:
        """Returns the dropout of the R rows, or of [B * P] with `positions`."""
        keys = self.keys
        if keys is not None and self.positions is None:
            keys = dropout_masks.keys_of_rows(keys, self.numbers, self.length)
        return dropout_masks.at(keys, site, rate)

    def _selected(self, rows):
        return ops.take(rows, self.numbers, axis=0)

    def _put_back(self, rows):
        zeros = ops.zeros_like(rows[:1])
        return ops.take(ops.concatenate([rows, zeros]), self._places, axis=0)


class ReadPositions:
    """The positions of the last layer that are read: by the pooler, and by a head.

    Args:
        features: those of `BertModel.call`, under our names.
        chosen: int32 [B, P], the positions that a head reads; None: all.
        is_causal: whether a position sees only itself and what precedes it.

    Attributes:
        computed: int32 [B, K + P], the positions to compute, those of the pooler
            first; None: all.
    """

    def __init__(
        self,
        features: numerics.Features,
        chosen: numerics.Tensor | None,
        is_causal: bool,
    ):
        self._has_one_sequence = "cls_positions" not in features
        self._reads_first = self._has_one_sequence and not is_causal
        self._pooled = pooled_positions(features, is_causal=is_causal)
        self.computed: numerics.Tensor | None = None
        if chosen is not None:
            chosen = ops.cast(chosen, "int32")
            self.computed = ops.concatenate([self._pooled, chosen], axis=1)

    def divide(
        self, vectors: numerics.Tensor
    ) -> tuple[numerics.Tensor, numerics.Tensor]:
        """Returns what the pooler reads, [B, H] or [B, K, H], and what a head reads.

        Args:
            vectors: [B, S, H], or [B, K + P, H] at the `computed` positions.
        """
        if self.computed is not None:
            num_pooled = ops.shape(self._pooled)[1]
            pooled, vectors = vectors[:, :num_pooled], vectors[:, num_pooled:]
        elif self._reads_first:
            pooled = vectors[:, :1]
        else:
            positions = ops.expand_dims(self._pooled, -1)
            pooled = ops.take_along_axis(vectors, positions, axis=1)  # [B, K, H]
        return pooled[:, 0] if self._has_one_sequence else pooled, vectors


def pooled_positions(
    features: numerics.Features, *, is_causal: bool = False
) -> numerics.Tensor:
    """Returns int32 [B, K]: [CLS] of each sequence, or the last piece of each.

    Under causal attention, [CLS] comes first and sees only itself, so its vector is the
    same for every text. The last real piece has seen the whole sequence.

    Args:
        features, is_causal: those of `ReadPositions`.
    """
    input_mask = numerics.input_mask_of(features)
    first = features.get("cls_positions", ops.zeros_like(input_mask[:, :1]))
    if not is_causal:
        return ops.cast(first, "int32")
    sequence_ids = features.get("sequence_ids", ops.zeros_like(input_mask))
    numbers = ops.take_along_axis(sequence_ids, first, axis=1)  # [B, K]
    is_same = ops.equal(sequence_ids[:, None, :], numbers[:, :, None])
    is_real = ops.cast(input_mask, "bool")[:, None, :]
    position = ops.arange(ops.shape(input_mask)[1], dtype="int32")
    real = ops.where(ops.logical_and(is_same, is_real), position, 0)  # [B, K, S]
    return ops.max(real, axis=-1)


def _possible_sizes():
    """Returns the values of R, ascending.

    There are four per doubling from 256 to 2048 rows, and eight above.
    """
    sizes = [_SMALLEST_GAP]
    while sizes[-1] < 1 << 24:
        power_of_two = 1 << (sizes[-1].bit_length() - 1)
        gap = min(max(power_of_two // 4, _SMALLEST_GAP), _LARGEST_GAP)
        sizes.append(sizes[-1] + max(gap, power_of_two // 8))
    return sizes


def _gathered(rows: Any, gather: Any, gather_back: Any) -> Any:
    """Returns `gather(rows)`; its gradient is a gather too, not a slower scatter."""

    @ops.custom_gradient
    def compute(rows):
        return gather(rows), gather_back

    return compute(rows)
