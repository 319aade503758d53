"""The stack of encoder layers.

Shape letters: B batch, S sequence, H hidden, L layers, P chosen positions.
"""

import functools
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import attention
from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import numerics
from bert_tf.modeling import real_rows

_DROPOUT_SITES_PER_LAYER = 3


class Intermediate(keras.layers.Layer):
    """The first, wide half of the feed-forward sublayer."""

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str = "intermediate",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.activation = numerics.activation(config.hidden_act)
        self.dense = attention.dense(
            config.intermediate_size, config, name="dense", dtype=self.dtype_policy
        )

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        self.dense.build((None, self.config.hidden_size))

    def call(self, inputs: numerics.Tensor) -> numerics.Tensor:
        """Returns [B * S, intermediate_size] for [B * S, H], in the compute dtype."""
        return self.activation(self.dense(inputs))


class EncoderLayer(keras.layers.Layer):
    """An attention and a feed-forward sublayer, each with its residual output."""

    def __init__(
        self, config: config_module.BertConfig, index: int, *, dtype: Any = None
    ):
        super().__init__(name=f"layer_{index}", dtype=dtype)
        self.config = config
        policy = self.dtype_policy
        first_site = (
            embeddings.EMBEDDINGS_DROPOUT_SITE + 1 + _DROPOUT_SITES_PER_LAYER * index
        )
        self.attention = attention.Attention(
            config, (first_site, first_site + 1), dtype=policy
        )
        self.intermediate = Intermediate(config, dtype=policy)
        self.residual_output = attention.ResidualOutput(
            config, first_site + 2, dtype=policy
        )

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        self.attention.build()
        self.intermediate.build()
        self.residual_output.build((None, self.config.intermediate_size))

    def call(
        self,
        inputs: numerics.Tensor,
        input_mask: numerics.Tensor,
        dropout_keys: numerics.Tensor | None = None,
        return_attention_weights: bool = False,
        *,
        rows: real_rows.RealRows | None = None,
        output_positions: numerics.Tensor | None = None,
    ) -> Any:
        """Computes both sublayers.

        Args:
            inputs, input_mask, dropout_keys, return_attention_weights, rows: those of
                `attention.SelfAttention`.
            output_positions: int32 [B, P], the positions to compute; None: all of them,
                or those in `rows`.

        Returns:
            [B * S, H], [R, H] with `rows`, or [B * P, H] with `output_positions`; with
            return_attention_weights a pair of this and float32 [B, N, F, T].
        """
        from_inputs = None
        if output_positions is not None:
            from_inputs = attention.gather_positions(
                inputs if rows is None else rows.put_back(inputs),
                output_positions,
                ops.shape(input_mask)[-1],
            )
        attended = self.attention(
            inputs,
            input_mask,
            dropout_keys=dropout_keys,
            return_attention_weights=return_attention_weights,
            rows=rows,
            from_inputs=from_inputs,
        )
        weights = None
        if return_attention_weights:
            attended, weights = attended
        wide = self.intermediate(attended)
        if rows is not None and output_positions is None:
            dropout_keys = rows.dropout_keys(dropout_keys)
        outputs = self.residual_output(wide, attended, dropout_keys=dropout_keys)
        return (outputs, weights) if return_attention_weights else outputs


class Encoder(keras.layers.Layer):
    """A stack of L encoder layers.

    Attributes:
        recomputes_layers: False by default. True keeps only each layer's input and
            recomputes the layer in the backward pass, which needs much less memory and
            a third more time. Gradients stay the same, because dropout masks are a
            function of their keys.

    Source: transformer_model of modeling.py, 2018.
    """

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str = "encoder",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.recomputes_layers = False
        self.encoder_layers: list[Any] = [
            EncoderLayer(config, index, dtype=self.dtype_policy)
            for index in range(config.num_hidden_layers)
        ]

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        for layer in self.encoder_layers:
            layer.build()

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of each layer's output, [B * S, H], for `summary`."""
        return (None, self.config.hidden_size)

    def call(
        self,
        inputs: numerics.Tensor,
        input_mask: numerics.Tensor,
        dropout_keys: numerics.Tensor | None = None,
        return_attention_weights: bool = False,
        output_positions: numerics.Tensor | None = None,
    ) -> Any:
        """Runs all layers, lowest first.

        Args:
            inputs, input_mask, dropout_keys, return_attention_weights: those of
                `attention.SelfAttention`.
            output_positions: int32 [B, P], the only positions at which the last layer
                is computed; None: all.

        Returns:
            List of L tensors [B * S, H], in the compute dtype: the layers' outputs.
            Vectors of padding have no meaning. They may be 0 in training. With
            output_positions, the last tensor is [B * P, H].
            With return_attention_weights a pair: this and a list of L tensors, float32
            [B, N, S, S].
        """
        outputs, all_weights = [], []
        rows = None
        if real_rows.is_worthwhile(inputs, input_mask) and not return_attention_weights:
            rows = real_rows.RealRows(input_mask)
            inputs = rows.select(inputs)
        positions = None
        for layer in self.encoder_layers:
            # No later layer attends to the vectors of the last one, so only those that
            # are read have to be computed.
            if layer is self.encoder_layers[-1] and output_positions is not None:
                positions = output_positions
                input_mask = _mask_at(input_mask, positions)
            # Mask and keys are bound, so that remat differentiates with respect to the
            # inputs only.
            compute = functools.partial(
                layer,
                input_mask=input_mask,
                dropout_keys=dropout_keys,
                return_attention_weights=return_attention_weights,
                rows=rows,
                output_positions=positions,
            )
            if self.recomputes_layers:
                compute = keras.remat(compute)
            inputs = compute(inputs)
            if return_attention_weights:
                inputs, weights = inputs
                all_weights.append(weights)
            if rows is None or positions is not None:
                outputs.append(inputs)
            else:
                outputs.append(rows.put_back_real(inputs))
        return (outputs, all_weights) if return_attention_weights else outputs


def _mask_at(input_mask, positions):
    """Returns what some positions [B, P] see: [B, T] unchanged, or [B, P, T]."""
    if len(input_mask.shape) == 2:  # All positions see the same ones.
        return input_mask
    length = ops.shape(input_mask)[-1]
    rows = ops.reshape(input_mask, (-1, length))  # [B * F, T]
    return attention.gather_positions(rows, positions, length)
