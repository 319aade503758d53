"""Kernels of a step that XLA compiles as a whole, backward pass included.

XLA fuses element-wise operations with each other and with matrix products, so what
limits a step is what it writes to memory. These forms compute more and write less.
"""

import functools
from typing import Any

import keras
from keras import ops

from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import plain

Tensor = plain.Tensor


class WholeStep(cpu.Cpu):
    """TPUs, GPUs with XLA, and JAX."""

    compute_bits = staticmethod(dropout_masks.bits_for_xla)

    def dense(self, layer: Any, x: Tensor) -> Tensor:
        """See `Plain.dense`. XLA computes sums in float32."""
        return layer(x)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        sequences: plain.Sequences,
        *,
        num_heads: int,
        dropout: plain.Dropout | None,
    ) -> Tensor:
        """See `Plain.attend`.

        Keras offers flash attention on JAX, which never writes the weights to memory.
        It cannot drop them as BERT does, and cuDNN needs an even number of queries.
        """
        is_jax = keras.backend.backend() == "jax"
        if not is_jax or dropout is not None or sequences.positions is not None:
            return super().attend(
                query, key, value, sequences, num_heads=num_heads, dropout=dropout
            )
        mask = ops.cast(sequences.visible, "bool")
        if len(mask.shape) == 2:
            mask = ops.repeat(ops.expand_dims(mask, 1), sequences.length, axis=1)
        context = ops.dot_product_attention(
            *(
                plain.heads_of(x, sequences.length, num_heads)
                for x in (query, key, value)
            ),
            mask=ops.expand_dims(mask, 1),  # [B, 1, F, T]: cuDNN does not broadcast F.
        )  # [B, F, N, D]
        return ops.reshape(context, (-1, query.shape[-1]))

    def _weighted_values(self, query, key, value, sequences, dropout):
        # Scores and weights have S / D times as many elements as queries. Computing
        # them again in the backward pass takes less time than writing them to memory.
        # The heads are split before, so that the backward pass does not have to
        # transpose them once more.
        compute = functools.partial(
            super()._weighted_values, sequences=sequences, dropout=dropout
        )
        recomputed: Any = keras.remat(lambda *heads: compute(*heads))
        return recomputed(query, key, value)
