"""Self-attention, and the residual output that follows every sublayer.

Shape letters: B batch, S sequence, H hidden, N heads, D = H / N, F from-sequence,
T to-sequence. Vectors are kept as [B * S, H]: every product with a kernel is then one
of two matrices.
"""

import keras
from keras import ops

from bert_tf.modeling import embeddings
from bert_tf.modeling import numerics


def dense(units, config, *, name, dtype):
    """Returns a dense layer with the release's initializer."""
    return keras.layers.Dense(
        units,
        kernel_initializer=numerics.initializer(config),
        name=name,
        dtype=dtype,
    )


def visible_positions(input_mask, *, sequence_ids=None, is_causal=False):
    """Returns what each position may look at, as `SelfAttention` takes it.

    Args:
        input_mask: integer [B, T], 1 for a real piece.
        sequence_ids: int32 [B, T], the number of the sequence that a position belongs
            to where several share a row: none looks at another one's. None: a row is
            one sequence.
        is_causal: bool, whether a position sees nothing that comes after it.

    Returns:
        int32 [B, T] where all positions see the same, else [B, F, T].
    """
    visible = ops.cast(input_mask, "int32")
    if sequence_ids is not None:
        is_same = ops.equal(sequence_ids[:, :, None], sequence_ids[:, None, :])
        visible = visible[:, None, :] * ops.cast(is_same, "int32")  # [B, F, T]
    if is_causal:
        place = ops.arange(ops.shape(input_mask)[1], dtype="int32")
        is_before = ops.cast(place[None, :] <= place[:, None], "int32")  # [F, T]
        visible = visible if sequence_ids is not None else visible[:, None, :]
        visible = visible * is_before  # [B, F, T]
    return visible


class SelfAttention(keras.layers.Layer):
    """Every position looks at every position that the mask allows.

    Source: section 3.2 of "Attention is all you need"; attention_layer of
    modeling.py, 2018.
    """

    def __init__(self, config, dropout_site, *, name="self", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.dropout_site = dropout_site
        policy = self.dtype_policy
        self.query = dense(config.hidden_size, config, name="query", dtype=policy)
        self.key = dense(config.hidden_size, config, name="key", dtype=policy)
        self.value = dense(config.hidden_size, config, name="value", dtype=policy)

    def build(self, input_shape=None):
        """Creates the weights."""
        shape = (None, self.config.hidden_size)
        self.query.build(shape)
        self.key.build(shape)
        self.value.build(shape)

    def call(
        self,
        inputs,
        input_mask,
        dropout_keys=None,
        return_attention_weights=False,
    ):
        """Lets every position look at those that the mask allows.

        Args:
            inputs: [B * F, H], in the compute dtype.
            input_mask: integer [B, T] or [B, F, T], 1 where a position may be looked
                at, as `visible_positions` returns it; T = F.
            dropout_keys: uint32 [B], or None for no dropout.
            return_attention_weights: bool, whether to return the shares too.

        Returns:
            [B * F, H], in the compute dtype. With return_attention_weights a pair of it
            and float32 [B, N, F, T]: how much each position looks at each other one,
            every row of sum 1, before dropout.
        """
        config = self.config
        length = ops.shape(input_mask)[-1]
        heads = (-1, length, config.num_attention_heads, config.size_per_head)
        # The scale goes to the queries: fewer elements than there are scores.
        query = self.query(inputs) * (config.size_per_head**-0.5)
        query = ops.transpose(ops.reshape(query, heads), (0, 2, 1, 3))  # [B, N, F, D]
        key = ops.reshape(self.key(inputs), heads)
        key = ops.transpose(key, (0, 2, 3, 1))  # [B, N, D, T]
        value = ops.reshape(self.value(inputs), heads)
        value = ops.transpose(value, (0, 2, 1, 3))  # [B, N, T, D]

        scores = ops.cast(ops.matmul(query, key), "float32")
        scores = scores + numerics.attention_bias(input_mask)  # [B, N, F, T]
        shares = numerics.softmax(scores)
        weights = numerics.dropout(
            ops.cast(shares, self.compute_dtype),
            config.attention_probs_dropout_prob,
            dropout_keys,
            self.dropout_site,
        )  # [B, N, F, T]
        context = ops.matmul(weights, value)  # [B, N, F, D]
        context = ops.transpose(context, (0, 2, 1, 3))  # [B, F, N, D]
        context = ops.reshape(context, (-1, config.hidden_size))
        return (context, shares) if return_attention_weights else context


class ResidualOutput(keras.layers.Layer):
    """Dense, dropout, sum with the sublayer's input, normalization."""

    def __init__(self, config, dropout_site, *, name="output", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.dropout_site = dropout_site
        self.dense = dense(
            config.hidden_size, config, name="dense", dtype=self.dtype_policy
        )
        self.normalization = embeddings.LayerNorm(
            config.layer_norm_epsilon, dtype=self.dtype_policy
        )

    def build(self, input_shape):
        """Creates the weights for inputs of this width."""
        self.dense.build(input_shape)
        self.normalization.build((None, self.config.hidden_size))

    def call(self, inputs, residual, dropout_keys=None):
        """Returns the normalized sum of the residual and the projected inputs.

        Args:
            inputs: [B * S, any width], in the compute dtype.
            residual: [B * S, H], what the sublayer was given.
            dropout_keys: uint32 [B], or None for no dropout.

        Returns:
            [B * S, H], in the compute dtype.
        """
        outputs = numerics.dropout(
            self.dense(inputs),
            self.config.hidden_dropout_prob,
            dropout_keys,
            self.dropout_site,
        )
        return self.normalization(outputs + residual)


class Attention(keras.layers.Layer):
    """Self-attention and its residual output."""

    def __init__(self, config, dropout_sites, *, name="attention", dtype=None):
        super().__init__(name=name, dtype=dtype)
        weights_site, output_site = dropout_sites
        self.config = config
        self.self_attention = SelfAttention(
            config, weights_site, dtype=self.dtype_policy
        )
        self.residual_output = ResidualOutput(
            config, output_site, dtype=self.dtype_policy
        )

    def build(self, input_shape=None):
        """Creates the weights."""
        self.self_attention.build()
        self.residual_output.build((None, self.config.hidden_size))

    def call(
        self,
        inputs,
        input_mask,
        dropout_keys=None,
        return_attention_weights=False,
    ):
        """Attends, then adds the inputs and normalizes.

        Args:
            inputs: [B * F, H], in the compute dtype.
            input_mask: integer [B, T] or [B, F, T], 1 where a position may be looked
                at, as `visible_positions` returns it; T = F.
            dropout_keys: uint32 [B], or None for no dropout.
            return_attention_weights: bool, as for `SelfAttention`.

        Returns:
            [B * F, H], in the compute dtype; or a pair, as `SelfAttention` does.
        """
        context = self.self_attention(
            inputs,
            input_mask,
            dropout_keys=dropout_keys,
            return_attention_weights=return_attention_weights,
        )
        shares = None
        if return_attention_weights:
            context, shares = context
        outputs = self.residual_output(context, inputs, dropout_keys=dropout_keys)
        return (outputs, shares) if return_attention_weights else outputs
