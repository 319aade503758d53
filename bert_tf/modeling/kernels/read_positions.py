"""The last layer, computed only at the positions that are read.

Shape letters: B batch, S sequence, K sequences per row, P chosen positions, H hidden.
"""

from keras import ops

from bert_tf.modeling import numerics
from bert_tf.modeling import visibility


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
        self._pooled = visibility.pooled_positions(features, is_causal=is_causal)
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
