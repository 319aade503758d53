"""Word, segment and position embeddings, and the layer normalization.

Shape letters: B batch, S sequence, H hidden, V vocabulary.
"""

import keras
import numpy as np
from keras import ops

from bert_tf.modeling import numerics

# Every place where dropout acts has a number; it chooses the place's masks.
EMBEDDINGS_DROPOUT_SITE = 0
# Vaswani et al., 2017, section 3.5: the longest of their waves, over 2 pi.
_LONGEST_WAVE = 10000.0


class LayerNorm(keras.layers.Layer):
    """Layer normalization in float32, under the release's names.

    Args:
        epsilon: float, added to the variance.
        name: the release's scope.
        dtype: the model's dtype policy; the result has its compute dtype.
    """

    def __init__(self, epsilon, *, name="LayerNorm", dtype=None):
        # Without autocast gamma, beta and the sums stay float32.
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.epsilon = epsilon

    def build(self, input_shape):
        """Creates gamma and beta."""
        size = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=size, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=size, initializer="zeros")

    def call(self, inputs):
        """Returns [rows, H] for [rows, H]."""
        outputs = numerics.layer_norm(inputs, self.gamma, self.beta, self.epsilon)
        return ops.cast(outputs, self.compute_dtype)


class Embeddings(keras.layers.Layer):
    """The sum of three embeddings, normalized, with dropout.

    Attributes:
        rows_multiple: int, 1 at first. Set before `build`, it has the words' table
            padded with rows of 0 up to a multiple, for products that fit the hardware.
            No id leads to them, and the masked-word head leaves their scores out.

    Source: embedding_lookup and embedding_postprocessor of modeling.py, 2018.
    """

    def __init__(self, config, *, name="embeddings", dtype=None):
        # Without autocast: rows are cast after the lookup, never the whole table.
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.config = config
        self.rows_multiple = 1
        self.normalization = LayerNorm(
            config.layer_norm_epsilon, dtype=self.dtype_policy
        )

    def build(self, input_shape=None):
        """Creates the three tables."""
        config = self.config
        self.word_embeddings = self._table(
            "word_embeddings",
            config.vocab_size,
            num_padding=-config.vocab_size % self.rows_multiple,
        )
        self.token_type_embeddings = self._table(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = self._table(
            "position_embeddings",
            config.max_position_embeddings,
            initialize=position_initializer(config),
        )
        self.normalization.build((None, config.hidden_size))

    def _table(self, name, num_rows, *, initialize=None, num_padding=0):
        initialize = initialize or numerics.initializer(self.config)

        def initialize_padded(shape, dtype=None):
            # The draws of a table without padding.
            rows = initialize((num_rows, *shape[1:]), dtype=dtype)
            return ops.pad(rows, ((0, num_padding), (0, 0)))

        return self.add_weight(
            name=name,
            shape=(num_rows + num_padding, self.config.hidden_size),
            initializer=initialize_padded if num_padding else initialize,
        )

    def call(self, input_ids, segment_ids, dropout_keys=None, position_ids=None):
        """Returns [B * S, H] for int32 ids [B, S].

        `position_ids`, int32 [B, S], are 0 to S - 1 in every row where there are none.
        """
        length = ops.shape(input_ids)[1]
        hidden = self.config.hidden_size
        words = numerics.lookup(
            self.word_embeddings, ops.reshape(input_ids, (-1,))
        )  # [B * S, H]
        # A product with few rows is faster than a gather, on TPUs above all.
        segments = ops.matmul(
            ops.one_hot(
                ops.reshape(segment_ids, (-1,)),
                self.config.type_vocab_size,
                dtype="float32",
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
        outputs = self.normalization(ops.reshape(summed, (-1, hidden)))
        return numerics.dropout(
            outputs,
            self.config.hidden_dropout_prob,
            dropout_keys,
            EMBEDDINGS_DROPOUT_SITE,
        )


def position_initializer(config):
    """Returns the initializer of the table of positions, as `config` names it.

    "normal" is the release's: rows drawn independently, so that what one position
    learns of its neighbour helps no other. "sinusoidal" begins with waves of the mean
    square initializer_range ** 2: "the piece before" is then one linear map, the same
    at every position. The table is trained either way.

    Source: Vaswani et al., 2017, section 3.5, which does not train them.
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
