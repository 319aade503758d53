"""Word, segment and position embeddings, and the layers that the encoder is made of.

Shape letters: B batch, S sequence, H hidden, V vocabulary.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import initial_values
from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import plain

# Every dropout site in a model has a number, which selects its masks.
EMBEDDINGS_DROPOUT_SITE = 0


class Scope(keras.layers.Layer):
    """A part of the names that variables have in the release, such as `attention`.

    It computes nothing: the layer around it uses the layers inside.

    Args:
        name: this part of the names.
        dtype: the model's dtype policy.
        **layers: the layers inside, by attribute.
    """

    def __init__(self, name: str, *, dtype: Any, **layers: Any):
        super().__init__(name=name, dtype=dtype)
        for attribute, layer in layers.items():
            setattr(self, attribute, layer)

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        for layer in self._layers:
            layer.build()


class Dense(keras.layers.Dense):
    """Keras's dense layer with the release's initializer and a known input width.

    Args:
        config: BertConfig.
        units: O.
        width: I; default: H.
        name: the layer's name.
        dtype: the model's dtype policy.
    """

    def __init__(
        self,
        config: config_module.BertConfig,
        units: int,
        *,
        width: int | None = None,
        name: str = "dense",
        dtype: Any = None,
    ):
        super().__init__(
            units,
            kernel_initializer=initial_values.of_weights(config),
            name=name,
            dtype=dtype,
        )
        self._width = width or config.hidden_size

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        super().build((None, self._width))

    def quantize(
        self, mode: Any = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Quantizes the kernel; see `keras.layers.Dense.quantize`."""
        # Keras refuses subclasses, whose `call` it would replace.
        super().quantize(mode, type_check=False, config=config)


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
        self.gamma = self._vector("gamma", "ones")
        self.beta = self._vector("beta", "zeros")

    def _vector(self, name, initializer):
        return self.add_weight(
            name=name, shape=(self._width,), initializer=initializer, autocast=False
        )


class Embeddings(keras.layers.Layer):
    """The sum of word, segment and position embeddings, normalized, with dropout.

    Attention itself ignores order, so positions have vectors of their own. They are
    learned like words, which limits a sequence to `max_position_embeddings`; learned
    and fixed positions work equally well (section 3.5 of "Attention Is All You Need").
    The segment embedding says which of two texts a piece belongs to, because [SEP]
    alone marks only where the first one ends (section 3 and Figure 2 of the paper).

    Source: embedding_lookup and embedding_postprocessor of modeling.py, 2018.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any = None):
        # Without autocast, rows are cast after the lookup and not the whole table.
        super().__init__(name="embeddings", dtype=dtype, autocast=False)
        self.config = config
        self.normalization = LayerNorm(config, dtype=self.dtype_policy)

    def build(self, input_shape: Any = None) -> None:
        """Creates the three tables."""
        config = self.config
        self.word_embeddings = self._table("word_embeddings", config.vocab_size)
        self.token_type_embeddings = self._table(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = self._table(
            "position_embeddings",
            config.max_position_embeddings,
            initializer=initial_values.of_positions(config),
        )
        self.normalization.build()

    def _table(self, name, num_rows, *, initializer=None):
        return self.add_weight(
            name=name,
            shape=(num_rows, self.config.hidden_size),
            initializer=initializer or initial_values.of_weights(self.config),
        )

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of the result, [B * S, H], for `summary`."""
        return (None, self.config.hidden_size)

    def call(
        self,
        input_ids: numerics.Tensor,
        segment_ids: numerics.Tensor,
        position_ids: numerics.Tensor | None,
        *,
        dropout: plain.Dropout | None,
        k: plain.Plain,
    ) -> numerics.Tensor:
        """Returns dropout(LayerNorm(words + segments + positions)), [B * S, H].

        Args:
            input_ids: int32 [B, S].
            segment_ids: int32 [B, S].
            position_ids: int32 [B, S]; None: 0 to S - 1 in every row.
            dropout: that of the result.
            k: the kernels.
        """
        length, width = ops.shape(input_ids)[1], self.config.hidden_size
        words = numerics.lookup(self.word_embeddings, ops.reshape(input_ids, (-1,)))
        # For a table of two rows a product is faster than a gather, especially on TPUs.
        segments = ops.matmul(
            ops.one_hot(
                ops.reshape(segment_ids, (-1,)),
                self.config.type_vocab_size,
                dtype=self.variable_dtype,
            ),
            self.token_type_embeddings,
        )  # [B * S, H]
        if position_ids is None:
            positions = self.position_embeddings[:length]  # [S, H]
        else:
            positions = numerics.lookup(
                self.position_embeddings, ops.reshape(position_ids, (-1,))
            )
            positions = ops.reshape(positions, (-1, length, width))  # [B, S, H]
        summed = ops.reshape(words + segments, (-1, length, width)) + positions
        summed = ops.cast(ops.reshape(summed, (-1, width)), "float32")  # [B * S, H]
        return k.norm_and_dropout(summed, self.normalization, dropout)
