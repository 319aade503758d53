"""The rows of a batch that are not padding.

Random batches contain short and long texts, so that a third or more of their positions
is padding. Products with kernels, normalization and activations treat every position
separately, so they can leave padding out. Only attention needs the padded layout.

Shape letters: B batch, S sequence, H hidden, R rows that are kept.
"""

from typing import Any

from keras import ops

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
