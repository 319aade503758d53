"""Self-attention, and the residual output that follows every sublayer.

Shape letters: B batch, S sequence, H hidden, N heads, D = H / N, F from-sequence,
T to-sequence, P chosen positions. Vectors are kept as [B * S, H], so that every product
with a kernel is a product of two matrices.
"""

import functools
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import compound_numerics
from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import fusible
from bert_tf.modeling import input_names
from bert_tf.modeling import numerics
from bert_tf.modeling import real_rows


class Dense(keras.layers.Dense):
    """Keras's dense layer, with an accurate gradient of the bias in bfloat16.

    A quantized layer has Keras's own gradient.
    """

    def call(self, inputs: numerics.Tensor, training: bool | None = None) -> Any:
        """Returns [..., units] for inputs [..., any width], in the compute dtype."""
        # In other dtypes, and in everything that XLA compiles, sums are float32 anyway.
        # A graph with constant weights has no gradient.
        is_plain = (
            self.compute_dtype != "bfloat16"
            or self.bias is None
            or numerics.is_xla_step()
            or fusible.is_fused(inputs)
        )
        if is_plain:
            return super().call(inputs, training=training)
        if len(inputs.shape) != 2:
            shape = ops.shape(inputs)
            rows = ops.reshape(inputs, (-1, shape[-1]))
            return ops.reshape(self.call(rows), (*shape[:-1], self.units))
        kernel = ops.cast(self.kernel, inputs.dtype)
        bias = ops.cast(self.bias, inputs.dtype)
        return self.activation(compound_numerics.affine(inputs, kernel, bias))

    def quantize(
        self, mode: Any = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Quantizes the kernel; see `keras.layers.Dense.quantize`."""
        # Keras refuses subclasses, whose `call` it would replace. This one computes the
        # same function as Keras's.
        super().quantize(mode, type_check=False, config=config)


def dense(
    units: int, config: config_module.BertConfig, *, name: str, dtype: Any
) -> Dense:
    """Returns a dense layer with the release's initializer."""
    return Dense(
        units,
        kernel_initializer=numerics.initializer(config),
        name=name,
        dtype=dtype,
    )


def input_mask_of(features: numerics.Features) -> numerics.Tensor:
    """Returns `input_mask`, int32 [..., S]; all 1 if the features lack it."""
    features = input_names.renamed(features)
    input_mask = features.get("input_mask")
    if input_mask is None:
        return ops.ones_like(features["input_ids"])
    return ops.cast(input_mask, "int32")


def visible_positions(
    input_mask: numerics.Tensor,
    *,
    sequence_ids: numerics.Tensor | None = None,
    is_causal: bool = False,
) -> numerics.Tensor:
    """Returns which positions each position sees, as `SelfAttention` takes it.

    Args:
        input_mask: integer [B, T], 1 for a real piece.
        sequence_ids: int32 [B, T], the number of each position's sequence if a row
            contains several; a position sees its own sequence only. None: one per row.
        is_causal: whether a position sees only itself and what precedes it.

    Returns:
        int32 [B, T] if all positions see the same ones, else [B, F, T].
    """
    visible = ops.cast(input_mask, "int32")
    if sequence_ids is not None:
        is_same = ops.equal(sequence_ids[:, :, None], sequence_ids[:, None, :])
        visible = visible[:, None, :] * ops.cast(is_same, "int32")  # [B, F, T]
    if is_causal:
        position = ops.arange(ops.shape(input_mask)[1], dtype="int32")
        is_seen = ops.cast(position[None, :] <= position[:, None], "int32")  # [F, T]
        visible = visible if sequence_ids is not None else visible[:, None, :]
        visible = visible * is_seen  # [B, F, T]
    return visible


def gather_positions(
    vectors: numerics.Tensor, positions: numerics.Tensor, length: Any
) -> numerics.Tensor:
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


class SelfAttention(keras.layers.Layer):
    """Every position collects information from all positions that the mask allows.

    Source: section 3.2 of "Attention Is All You Need" (Vaswani et al., 2017);
    attention_layer of modeling.py, 2018.
    """

    def __init__(
        self,
        config: config_module.BertConfig,
        dropout_site: int,
        *,
        name: str = "self",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        config.check_heads()
        self.config = config
        self.dropout_site = dropout_site
        policy = self.dtype_policy
        self.query = dense(config.hidden_size, config, name="query", dtype=policy)
        self.key = dense(config.hidden_size, config, name="key", dtype=policy)
        self.value = dense(config.hidden_size, config, name="value", dtype=policy)

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        shape = (None, self.config.hidden_size)
        self.query.build(shape)
        self.key.build(shape)
        self.value.build(shape)

    def call(
        self,
        inputs: numerics.Tensor,
        input_mask: numerics.Tensor,
        dropout_keys: numerics.Tensor | None = None,
        return_attention_weights: bool = False,
        *,
        rows: real_rows.RealRows | None = None,
        from_inputs: numerics.Tensor | None = None,
    ) -> Any:
        """Computes attention.

        Args:
            inputs: [B * T, H], in the compute dtype.
            input_mask: integer [B, T] or [B, F, T], from `visible_positions`.
            dropout_keys: uint32 [B], or None for no dropout.
            return_attention_weights: whether to return the attention weights too.
            rows: the R of B * T rows that `inputs` contains; None: all. The result has
                the same rows unless `from_inputs` is given.
            from_inputs: [B, F, H], the inputs that act as queries; None: all of them.

        Returns:
            [B * F, H], in the compute dtype. With return_attention_weights a pair: this
            and float32 [B, N, F, T], the weights before dropout; each row sums to 1.
        """
        # The dot product of two vectors of D independent components with variance 1 has
        # the variance D. Divided by sqrt(D), scores stay in the range where the
        # softmax has a useful gradient, for any head size (section 3.2.1 of "Attention
        # Is All You Need"). Queries have fewer elements than scores, so they are
        # divided instead, except where TensorFlow fuses the division of the scores.
        scale = self.config.size_per_head**-0.5
        is_plain = dropout_keys is None and not return_attention_weights
        is_fused = is_plain and fusible.is_fused(inputs)
        query, key, value = self._projected(
            inputs, from_inputs, rows, query_scale=None if is_fused else scale
        )
        length = ops.shape(input_mask)[-1]
        from_length = length if from_inputs is None else ops.shape(from_inputs)[1]
        if is_fused:
            query, key = self._split(query, from_length), self._split(key, length)
            weights = fusible.attention_weights(query, key, input_mask, scale)
            return self._weighted(weights, self._split(value, length))
        drops = dropout_keys is not None and self.config.attention_probs_dropout_prob
        # A few queries gain little from it, and cuDNN needs an even number of them.
        is_whole = from_inputs is None and not return_attention_weights
        if _has_flash_attention() and is_whole and not drops:
            return self._flash_attention(query, key, value, input_mask)
        heads = (
            self._split(query, from_length),
            self._split_transposed(key, length),
            self._split(value, length),
        )
        attend = functools.partial(
            self._attend, input_mask=input_mask, dropout_keys=dropout_keys
        )
        # Scores and weights have S / D times as many elements as queries. In a step
        # that XLA compiles, computing them again in the backward pass takes less time
        # than writing them to memory. The heads are split before, so that the backward
        # pass does not have to transpose them once more.
        if numerics.is_xla_step() and rows is None and not return_attention_weights:
            return keras.remat(lambda *heads: attend(*heads)[0])(*heads)
        context, scores = attend(*heads)
        if return_attention_weights:
            return context, compound_numerics.masked_softmax(scores, input_mask)
        if rows is not None and from_inputs is None:
            return rows.select(context)
        return context

    def _projected(self, inputs, from_inputs, rows, *, query_scale):
        """Returns queries [B * F, H], and keys and values [B * T, H]."""
        queried = inputs
        if from_inputs is not None:
            queried = ops.reshape(from_inputs, (-1, self.config.hidden_size))
        query, key, value = self.query(queried), self.key(inputs), self.value(inputs)
        if query_scale is not None:
            query = query * query_scale
        if rows is not None:
            key, value = rows.put_back(key), rows.put_back(value)
            if from_inputs is None:
                query = rows.put_back(query)
        return query, key, value

    def _split(self, x, length):
        """Returns [B, N, S, D] of [B * S, H]."""
        return ops.transpose(self._heads(x, length), (0, 2, 1, 3))

    def _split_transposed(self, x, length):
        """Returns [B, N, D, S] of [B * S, H]."""
        return ops.transpose(self._heads(x, length), (0, 2, 3, 1))

    def _heads(self, x, length):
        """Returns [B, S, N, D] of [B * S, H]."""
        config = self.config
        shape = (-1, length, config.num_attention_heads, config.size_per_head)
        return ops.reshape(x, shape)

    def _flash_attention(self, query, key, value, input_mask):
        """Returns the context [B * F, H] from the backend's own attention."""
        length = ops.shape(input_mask)[-1]
        mask = ops.cast(input_mask, "bool")
        context = ops.dot_product_attention(
            self._heads(query, length),
            self._heads(key, length),
            self._heads(value, length),
            mask=ops.expand_dims(mask, (1, 2) if len(mask.shape) == 2 else 1),
            scale=1.0,
        )  # [B, F, N, D]
        return ops.reshape(context, (-1, self.config.hidden_size))

    def _attend(self, query, key, value, *, input_mask, dropout_keys):
        """Returns the context [B * F, H] and the scores [B, N, F, T].

        Args:
            query: [B, N, F, D].
            key: [B, N, D, T].
            value: [B, N, T, D].
            input_mask: that of `call`.
            dropout_keys: that of `call`.
        """
        config = self.config
        scores = ops.matmul(query, key)  # [B, N, F, T]
        # Dropping a weight hides one position from another, as in the original model.
        kept = compound_numerics.dropped_attention_weights(
            scores,
            input_mask,
            dropout_keys,
            site=self.dropout_site,
            rate=config.attention_probs_dropout_prob,
        )  # [B, N, F, T]
        return self._weighted(kept, value), scores

    def _weighted(self, weights, value):
        """Returns sums of values [B, N, T, D] with weights [B, N, F, T]: [B * F, H]."""
        context = ops.matmul(weights, value)  # [B, N, F, D]
        context = ops.transpose(context, (0, 2, 1, 3))  # [B, F, N, D]
        return ops.reshape(context, (-1, self.config.hidden_size))


def _has_flash_attention():
    """Returns whether the backend may have flash attention, on GPUs and TPUs.

    Keras offers it on JAX. It never writes the weights to memory, so it cannot drop
    them as BERT does, and it is used only where none are dropped.
    """
    return keras.backend.backend() == "jax"


class AddAndNorm(embeddings.LayerNorm):
    """Adds a sublayer's input to its result after dropout, and normalizes the sum.

    Args:
        config: `BertConfig`.
        dropout_site: number of this dropout in the model.
        dtype: the model's dtype policy.
    """

    def __init__(
        self, config: config_module.BertConfig, dropout_site: int, *, dtype: Any = None
    ):
        super().__init__(config.layer_norm_epsilon, dtype=dtype)
        self.config = config
        self.dropout_site = dropout_site

    def call(  # type: ignore[override]  # It takes the residual as well.
        self,
        inputs: numerics.Tensor,
        residual: numerics.Tensor,
        dropout_keys: numerics.Tensor | None = None,
    ) -> numerics.Tensor:
        """Returns [rows, H] for inputs and residual [rows, H]."""
        if dropout_keys is None and fusible.is_fused(inputs):
            return fusible.add_and_norm(
                inputs, residual, self.gamma, self.beta, self.epsilon
            )
        return compound_numerics.add_and_norm(
            inputs,
            residual,
            self.gamma,
            self.beta,
            dropout_keys,
            site=self.dropout_site,
            rate=self.config.hidden_dropout_prob,
            epsilon=self.epsilon,
        )


class ResidualOutput(keras.layers.Layer):
    """Projects a sublayer's result, adds the sublayer's input and normalizes the sum.

    As in the original Transformer (section 3.1 of "Attention Is All You Need"), the
    normalization comes after the sum. Later models normalize before the sublayer, which
    trains more steadily at large rates; BERT instead needs the warm-up. The order is
    part of what released weights compute, so it is not an option.
    """

    def __init__(
        self,
        config: config_module.BertConfig,
        dropout_site: int,
        *,
        name: str = "output",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.dense = dense(
            config.hidden_size, config, name="dense", dtype=self.dtype_policy
        )
        self.normalization = AddAndNorm(config, dropout_site, dtype=self.dtype_policy)

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs of this width."""
        self.dense.build(input_shape)
        self.normalization.build((None, self.config.hidden_size))

    def call(
        self,
        inputs: numerics.Tensor,
        residual: numerics.Tensor,
        dropout_keys: numerics.Tensor | None = None,
    ) -> numerics.Tensor:
        """Returns [B * S, H], in the compute dtype.

        Args:
            inputs: [B * S, any width], in the compute dtype.
            residual: [B * S, H], the sublayer's input.
            dropout_keys: uint32 [B], or None for no dropout.
        """
        return self.normalization(
            self.dense(inputs), residual, dropout_keys=dropout_keys
        )


class Attention(keras.layers.Layer):
    """Self-attention and its residual output."""

    def __init__(
        self,
        config: config_module.BertConfig,
        dropout_sites: tuple[int, int],
        *,
        name: str = "attention",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        weights_site, output_site = dropout_sites
        self.config = config
        self.self_attention = SelfAttention(
            config, weights_site, dtype=self.dtype_policy
        )
        self.residual_output = ResidualOutput(
            config, output_site, dtype=self.dtype_policy
        )

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        self.self_attention.build()
        self.residual_output.build((None, self.config.hidden_size))

    def call(
        self,
        inputs: numerics.Tensor,
        input_mask: numerics.Tensor,
        dropout_keys: numerics.Tensor | None = None,
        return_attention_weights: bool = False,
        *,
        rows: real_rows.RealRows | None = None,
        from_inputs: numerics.Tensor | None = None,
    ) -> Any:
        """Returns [B * F, H], or a pair.

        Arguments are those of `SelfAttention`. With `rows` but no `from_inputs`, there
        are R rows, and the residual output draws its dropout for them.
        """
        context = self.self_attention(
            inputs,
            input_mask,
            dropout_keys=dropout_keys,
            return_attention_weights=return_attention_weights,
            rows=rows,
            from_inputs=from_inputs,
        )
        weights = None
        if return_attention_weights:
            context, weights = context
        if from_inputs is not None:
            inputs = ops.reshape(from_inputs, (-1, self.config.hidden_size))
        elif rows is not None:
            dropout_keys = rows.dropout_keys(dropout_keys)
        outputs = self.residual_output(context, inputs, dropout_keys=dropout_keys)
        return (outputs, weights) if return_attention_weights else outputs
