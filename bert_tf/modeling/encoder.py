"""The stack of encoder layers.

Shape letters: B batch, S sequence, H hidden, L layers.
"""

import functools

import keras

from bert_tf.modeling import attention
from bert_tf.modeling import embeddings
from bert_tf.modeling import numerics

_DROPOUT_SITES_A_LAYER = 3


class Intermediate(keras.layers.Layer):
    """The wide half of the feed-forward sublayer."""

    def __init__(self, config, *, name="intermediate", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.activation = numerics.activation(config.hidden_act)
        self.dense = attention.dense(
            config.intermediate_size, config, name="dense", dtype=self.dtype_policy
        )

    def build(self, input_shape=None):
        """Creates the weights."""
        self.dense.build((None, self.config.hidden_size))

    def call(self, inputs):
        """Returns [B * S, intermediate_size] for inputs [B * S, H], activated.

        Both are in the compute dtype.
        """
        return self.activation(self.dense(inputs))


class EncoderLayer(keras.layers.Layer):
    """Attention and feed-forward, each with its residual output."""

    def __init__(self, config, index, *, dtype=None):
        super().__init__(name=f"layer_{index}", dtype=dtype)
        self.config = config
        policy = self.dtype_policy
        first_site = (
            embeddings.EMBEDDINGS_DROPOUT_SITE + 1 + _DROPOUT_SITES_A_LAYER * index
        )
        self.attention = attention.Attention(
            config, (first_site, first_site + 1), dtype=policy
        )
        self.intermediate = Intermediate(config, dtype=policy)
        self.residual_output = attention.ResidualOutput(
            config, first_site + 2, dtype=policy
        )

    def build(self, input_shape=None):
        """Creates the weights."""
        self.attention.build()
        self.intermediate.build()
        self.residual_output.build((None, self.config.intermediate_size))

    def call(
        self,
        inputs,
        input_mask,
        dropout_keys=None,
        return_attention_weights=False,
    ):
        """Attends and feeds forward.

        Args:
            inputs: [B * S, H], in the compute dtype.
            input_mask: integer [B, S] or [B, S, S], 1 where a position may be looked
                at, as `attention.visible_positions` returns it.
            dropout_keys: uint32 [B], or None for no dropout.
            return_attention_weights: bool, whether to return the shares too.

        Returns:
            [B * S, H], in the compute dtype; with return_attention_weights a pair of it
            and float32 [B, N, S, S], as `attention.SelfAttention` does.
        """
        attended = self.attention(
            inputs,
            input_mask,
            dropout_keys=dropout_keys,
            return_attention_weights=return_attention_weights,
        )
        shares = None
        if return_attention_weights:
            attended, shares = attended
        wide = self.intermediate(attended)
        outputs = self.residual_output(wide, attended, dropout_keys=dropout_keys)
        return (outputs, shares) if return_attention_weights else outputs


class Encoder(keras.layers.Layer):
    """L encoder layers, one on the other.

    Attributes:
        recomputes_layers: bool, False at first. True: a backward pass finds of every
            layer its inputs alone and computes the layer once more. That takes a third
            more time and little memory; gradients stay the same, dropout's masks being
            a function of their keys.

    Source: transformer_model of modeling.py, 2018.
    """

    def __init__(self, config, *, name="encoder", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.recomputes_layers = False
        self.encoder_layers = [
            EncoderLayer(config, index, dtype=self.dtype_policy)
            for index in range(config.num_hidden_layers)
        ]

    def build(self, input_shape=None):
        """Creates the weights."""
        for layer in self.encoder_layers:
            layer.build()

    def call(
        self,
        inputs,
        input_mask,
        dropout_keys=None,
        return_attention_weights=False,
    ):
        """Runs all layers, lowest first.

        Args:
            inputs: [B * S, H], in the compute dtype.
            input_mask: integer [B, S] or [B, S, S], 1 where a position may be looked
                at, as `attention.visible_positions` returns it.
            dropout_keys: uint32 [B], or None for no dropout.
            return_attention_weights: bool, whether to return the shares too.

        Returns:
            list of L tensors [B * S, H], in the compute dtype: every layer's output;
            with return_attention_weights a pair of it and a list of L tensors, float32
            [B, N, S, S].
        """
        outputs, all_shares = [], []
        for layer in self.encoder_layers:
            # Keys and mask belong to the function: it has a gradient for inputs alone.
            compute = functools.partial(
                layer,
                input_mask=input_mask,
                dropout_keys=dropout_keys,
                return_attention_weights=return_attention_weights,
            )
            if self.recomputes_layers:
                compute = keras.remat(compute)
            inputs = compute(inputs)
            if return_attention_weights:
                inputs, shares = inputs
                all_shares.append(shares)
            outputs.append(inputs)
        return (outputs, all_shares) if return_attention_weights else outputs
