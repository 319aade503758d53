"""Word, segment and position embeddings, and layer normalization.

Shape letters: B batch, S sequence, H hidden, V vocabulary.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf.modeling import compound_numerics
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

# Every dropout site in a model has a number, which selects its masks.
EMBEDDINGS_DROPOUT_SITE = 0
# The longest wavelength, divided by 2 pi (Vaswani et al., 2017, section 3.5).
_LONGEST_WAVE = 10000.0


class LayerNorm(keras.layers.Layer):
    """Layer normalization in float32, with the release's names.

    Args:
        epsilon: added to the variance.
        name: the release's scope.
        dtype: the model's dtype policy; the result has its compute dtype.
    """

    def __init__(self, epsilon: float, *, name: str = "LayerNorm", dtype: Any = None):
        # Without autocast, gamma, beta and the sums stay float32.
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        """Creates gamma and beta."""
        size = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=size, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=size, initializer="zeros")

    def call(self, inputs: numerics.Tensor) -> numerics.Tensor:
        """Returns [rows, H] for [rows, H]."""
        outputs = numerics.layer_norm(inputs, self.gamma, self.beta, self.epsilon)
        return ops.cast(outputs, self.compute_dtype)


class Embeddings(keras.layers.Layer):
    """The sum of word, segment and position embeddings, normalized, with dropout.

    Attention itself ignores order, so positions have vectors of their own. They are
    learned like words, which limits a sequence to `max_position_embeddings`; learned
    and fixed positions work equally well (section 3.5 of "Attention Is All You Need").
    The segment embedding says which of two texts a piece belongs to, because [SEP]
    alone marks only where the first one ends (section 3 and Figure 2 of the paper).

    Source: embedding_lookup and embedding_postprocessor of modeling.py, 2018.
    """

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str = "embeddings",
        dtype: Any = None,
    ):
        # Without autocast, rows are cast after the lookup and not the whole table.
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.config = config
        self.normalization = LayerNorm(
            config.layer_norm_epsilon, dtype=self.dtype_policy
        )

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
            initialize=position_initializer(config),
        )
        self.normalization.build((None, config.hidden_size))

    def _table(self, name, num_rows, *, initialize=None):
        return self.add_weight(
            name=name,
            shape=(num_rows, self.config.hidden_size),
            initializer=initialize or numerics.initializer(self.config),
        )

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of the result, [B * S, H], for `summary`."""
        return (None, self.config.hidden_size)

    def call(
        self,
        input_ids: numerics.Tensor,
        segment_ids: numerics.Tensor,
        dropout_keys: numerics.Tensor | None = None,
        position_ids: numerics.Tensor | None = None,
    ) -> numerics.Tensor:
        """Returns [B * S, H].

        Args:
            input_ids: int32 [B, S].
            segment_ids: int32 [B, S].
            dropout_keys: uint32 [B], or None for no dropout.
            position_ids: int32 [B, S]; None: 0 to S - 1 in every row.
        """
        length = ops.shape(input_ids)[1]
        hidden = self.config.hidden_size
        words = numerics.lookup(
            self.word_embeddings, ops.reshape(input_ids, (-1,))
        )  # [B * S, H]
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
            positions = ops.reshape(positions, (-1, length, hidden))  # [B, S, H]
        summed = ops.reshape(words + segments, (-1, length, hidden)) + positions
        return compound_numerics.norm_and_dropout(
            ops.cast(ops.reshape(summed, (-1, hidden)), "float32"),
            self.normalization.gamma,
            self.normalization.beta,
            dropout_keys,
            site=EMBEDDINGS_DROPOUT_SITE,
            rate=self.config.hidden_dropout_prob,
            epsilon=self.normalization.epsilon,
            dtype=self.compute_dtype,
        )


def position_initializer(config: config_module.BertConfig) -> Any:
    """Returns the initializer of the position table that `config` names.

    "normal" is the release's: rows are drawn independently, so what one position learns
    about its neighbor does not help any other position. "sinusoidal" starts with waves
    whose mean square is initializer_range ** 2: "the previous piece" is then the same
    linear map at every position, and small models learn sooner to use context. The
    table is trained in both cases.

    Source: Vaswani et al., 2017, section 3.5, where the waves are not trained.
    """
    if config.position_initializer == "normal":
        return numerics.initializer(config)

    def waves(shape, dtype=None):
        num_positions, hidden_size = shape
        columns = np.arange(hidden_size)
        wavelengths = _LONGEST_WAVE ** (columns // 2 * 2 / hidden_size)
        angles = np.arange(num_positions)[:, None] / wavelengths
        table = np.where(columns % 2, np.cos(angles), np.sin(angles))
        # The mean square of a wave is 1/2.
        return ops.convert_to_tensor(
            table * np.sqrt(2) * config.initializer_range, dtype=dtype or "float32"
        )

    return waves
