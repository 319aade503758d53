"""Word, segment and position embeddings, and the layers that the encoder is made of.

Shape letters: B batch, S sequence, H hidden, V vocabulary.
"""

import functools
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import initial_values
from bert_tf.modeling import input_features
from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import plain


class Scope(keras.layers.Layer):
    """Groups layers under one name, such as `attention`, as in the release.

    Args:
        name: this part of the names of their variables.
        width: input width of the dense layers.
        dtype: the model's dtype policy.
        **layers: the layers inside, by attribute.
    """

    def __init__(
        self, name: str, *, width: int | None = None, dtype: Any = None, **layers: Any
    ):
        super().__init__(name=name, dtype=dtype)
        self._width = width
        for attribute, layer in layers.items():
            setattr(self, attribute, layer)

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of all layers inside."""
        for layer in self._layers:
            layer.build((None, self._width))


def dense(
    config: config_module.BertConfig,
    units: int,
    *,
    name: str = "dense",
    dtype: Any = None,
) -> keras.layers.Dense:
    """Returns a layer x W + b with the release's initial weights."""
    normal = initial_values.of_weights(config)
    return keras.layers.Dense(units, kernel_initializer=normal, name=name, dtype=dtype)


class LayerNorm(keras.layers.Layer):
    """Weights of a layer normalization; `kernels` computes it, in float32.

    Args:
        config: BertConfig.
        dtype: the model's dtype policy; results have its compute dtype.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any = None):
        super().__init__(name="LayerNorm", dtype=dtype, autocast=False)
        self.epsilon = config.layer_norm_epsilon
        self._width = config.hidden_size

    def build(self, input_shape: Any = None) -> None:
        """Creates gamma and beta, which stay float32."""
        vector = functools.partial(self.add_weight, (self._width,), autocast=False)
        self.gamma = vector(name="gamma", initializer="ones")
        self.beta = vector(name="beta", initializer="zeros")


class Embeddings(keras.layers.Layer):
    """The sum of word, segment and position embeddings, normalized, with dropout.

    Attention itself ignores order, so positions have vectors of their own. They are
    learned like word vectors, which limits a sequence to `max_position_embeddings`;
    fixed ones work equally well (section 3.5 of "Attention Is All You Need"). The
    segment embedding says which of two texts a piece belongs to (section 3 and Figure 2
    of the BERT paper). The normalization comes from the release's code. Unlike the
    Transformer, BERT does not multiply word vectors by sqrt(H).

    Source: embedding_lookup and embedding_postprocessor of modeling.py, 2018.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any = None):
        # Without autocast, rows are cast after the lookup and not the whole table.
        super().__init__(name="embeddings", dtype=dtype, autocast=False)
        self.config = config
        self.normalization = LayerNorm(config, dtype=self.dtype_policy)
        self.output_shape = (None, None, config.hidden_size)  # For `summary`.

    def build(self, input_shape: Any = None) -> None:
        """Creates the three tables."""
        config = self.config

        def table(name, num_rows, initializer=initial_values.of_weights):
            shape = (num_rows, config.hidden_size)
            return self.add_weight(shape, name=name, initializer=initializer(config))

        self.word_embeddings = table("word_embeddings", config.vocab_size)
        segments = table("token_type_embeddings", config.type_vocab_size)
        self.token_type_embeddings = segments
        length, normal = config.max_position_embeddings, initial_values.of_positions
        self.position_embeddings = table("position_embeddings", length, normal)
        self.normalization.build()

    def call(
        self,
        features: numerics.Features,
        *,
        dropout_keys: numerics.Tensor | None,
        k: plain.Plain,
    ) -> numerics.Tensor:
        """Returns dropout(LayerNorm(words + segments + positions)), [B, S, H].

        Args:
            features: `input_ids`, and optionally `segment_ids` (default: 0) and
                `position_ids` (default: 0 to S - 1 in every row), int32 [B, S].
                `inputs_embeds`, float [B, S, H], replaces the lookup of words.
            dropout_keys: see `BertModel.call`.
            k: the kernels.

        Raises:
            ValueError: the sequences are longer than the position table.
        """
        config, width = self.config, self.config.hidden_size
        length = ops.shape(features["input_ids"])[1]
        if isinstance(length, int):  # A static length.
            config.check_sequence_length(length)
        input_ids = ops.reshape(features["input_ids"], (-1,))  # [B * S]
        words = features.get(input_features.EMBEDDINGS)
        if words is None:
            words = numerics.lookup(self.word_embeddings, input_ids)  # [B * S, H]
        words = ops.reshape(words, (-1, width))
        segment_ids = features.get("segment_ids", ops.zeros_like(input_ids))
        # For a table of two rows a product is faster than a gather, especially on TPUs.
        is_segment = ops.one_hot(
            ops.reshape(segment_ids, (-1,)),
            config.type_vocab_size,
            dtype=self.variable_dtype,
        )  # [B * S, type_vocab_size]
        segments = ops.matmul(is_segment, self.token_type_embeddings)  # [B * S, H]
        position_ids = features.get("position_ids")
        if position_ids is None and input_features.is_building():
            position_ids = ops.arange(length)  # JAX cannot slice by an unknown length.
        if position_ids is None:
            positions = self.position_embeddings[:length]  # [S, H]
        else:
            positions = numerics.lookup(self.position_embeddings, position_ids)
        total = ops.reshape(words + segments, (-1, length, width)) + positions
        total = ops.cast(ops.reshape(total, (-1, width)), "float32")  # [B * S, H]
        dropout = dropout_masks.at(dropout_keys, 0, config.hidden_dropout_prob)
        x = k.norm_and_dropout(total, self.normalization, dropout)
        return ops.reshape(x, (-1, length, width))
