"""BertModel: token ids in, vectors out.

Shape letters: B batch, S sequence, H hidden, I intermediate, N attention heads, D =
H / N, F from-sequence, T to-sequence, K sequences per example (1 unless packed), L
layers, P positions that a task's layer reads, R vectors. The vectors of a batch are the
rows of a matrix, [R, H], so that every product with weights is a product of two
matrices. R is B * S, or less where a kernel leaves out padding. In the last layer, the
queries and what follows from them may be fewer, R = B * (K + P).

`k` is the set of kernels that a call uses: how each equation is computed on the device
at hand. `kernels.plain` has the formula of each.

`sequences` says which positions a layer computes, what they see, and which random
numbers determine their dropout, which the kernels apply. "The release" is
github.com/google-research/bert of 2018; a piece is a WordPiece token.
"""

import functools
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
from bert_tf.modeling import pretrained_model
from bert_tf.modeling.kernels import computed_rows
from bert_tf.modeling.kernels import plain


class EncoderLayer(embeddings.Scope):
    """An attention and a feed-forward sublayer, each with a residual connection.

    In attention, every position collects information from all positions that it sees.
    The feed-forward sublayer then transforms each position by itself.

    As in the original Transformer, the normalization comes after the sum, so that each
    layer rescales what all layers below it add. This makes gradients near the output
    large at first; hence the warm-up. Later models normalize before the sublayer.
    Released weights were trained in this order, so it is not an option.

    Source: section 3 of "Attention Is All You Need" (Vaswani et al., 2017), whose
    sections the comments name; attention_layer and transformer_model of modeling.py,
    2018.
    """

    def __init__(
        self, config: config_module.BertConfig, index: int, *, dtype: Any = None
    ):
        super().__init__(f"layer_{index}", dtype=dtype)
        config.check_heads()
        self.config = config
        # Every place of dropout has a number, which selects its masks: 0 is that of the
        # embeddings, and each layer has three.
        self.first_site = 1 + 3 * index
        hidden, inner = config.hidden_size, config.intermediate_size
        scope = functools.partial(embeddings.Scope, dtype=dtype)
        dense = functools.partial(embeddings.dense, config, dtype=dtype)
        norm = functools.partial(embeddings.LayerNorm, config, dtype=dtype)
        self.attention = scope(
            "attention",
            self_attention=scope(
                "self",
                width=hidden,
                query=dense(hidden, name="query"),
                key=dense(hidden, name="key"),
                value=dense(hidden, name="value"),
            ),
            residual_output=scope(
                "output", width=hidden, dense=dense(hidden), normalization=norm()
            ),
        )
        self.intermediate = scope("intermediate", width=hidden, dense=dense(inner))
        self.residual_output = scope(
            "output", width=inner, dense=dense(hidden), normalization=norm()
        )

    def call(
        self, x: numerics.Tensor, sequences: plain.Sequences, k: plain.Plain
    ) -> numerics.Tensor:
        """Returns the layer's vectors, [R, H].

        Args:
            x: [R, H], in the compute dtype.
            sequences: which positions are computed, and what they see.
            k: the kernels.
        """
        config = self.config
        projections = self.attention.self_attention  # W^Q, W^K and W^V of all heads.
        output = self.attention.residual_output  # W^O.

        inputs = sequences.queries(x)  # [R, H]: x, or part of it in the last layer.
        # softmax(Q K^T / sqrt(D)) V, per head (section 3.2.1), with the release's
        # biases, mask and dropout of the attention weights. The dot product of two
        # vectors of D independent components with mean 0 and variance 1 has variance D.
        # Dividing by sqrt(D) keeps scores where the softmax has a useful gradient, for
        # any head size. The mask adds -10000, far below any score, where a position
        # does not see another one: that weight becomes 0. With -inf, positions of an
        # empty example, which see none, would get NaN.
        context = k.attend(
            k.dense(projections.query, inputs),
            k.dense(projections.key, x),
            k.dense(projections.value, x),
            sequences,
            num_heads=config.num_attention_heads,
            dropout=sequences.dropout_of_weights(
                self.first_site, config.attention_probs_dropout_prob
            ),
        )  # [R, H]: the heads side by side; each had weights [B, F, T].

        # LayerNorm(x + Dropout(Sublayer(x))), twice (sections 3.1 and 5.4).
        attended = k.add_and_norm(
            k.dense(output.dense, context),
            inputs,
            output.normalization,
            sequences.dropout(self.first_site + 1, config.hidden_dropout_prob),
        )  # [R, H]

        # FFN(x) = gelu(x W1 + b1) W2 + b2: section 3.3 with GELU instead of ReLU, as in
        # OpenAI's GPT. GELU(x) = x P(X <= x), for a standard normal X, is smooth. The
        # release's tanh form is x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
        inner = k.activation(
            numerics.activation(config.hidden_act),
            k.dense(self.intermediate.dense, attended),
        )  # [R, I]
        return k.add_and_norm(
            k.dense(self.residual_output.dense, inner),
            attended,
            self.residual_output.normalization,
            sequences.dropout(self.first_site + 2, config.hidden_dropout_prob),
        )  # [R, H]


class Encoder(embeddings.Scope):
    """A stack of L encoder layers.

    Attributes:
        recomputes_layers: False by default. True keeps only each layer's input and
            recomputes the layer in the backward pass, which needs much less memory and
            about a third more time. Gradients stay the same, because dropout masks are
            a function of the dropout keys.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any = None):
        layers = {
            f"layer_{index}": EncoderLayer(config, index, dtype=dtype)
            for index in range(config.num_hidden_layers)
        }
        # `tf.train.Checkpoint` finds layers in attributes, but not in lists.
        super().__init__("encoder", dtype=dtype, **layers)
        self.recomputes_layers = False
        self.encoder_layers: list[Any] = [*layers.values()]
        self.output_shape = (None, None, config.hidden_size)  # For `summary`.

    def call(
        self,
        x: numerics.Tensor,
        sequences: plain.Sequences,
        k: plain.Plain,
        last_positions: numerics.Tensor | None = None,
    ) -> list[numerics.Tensor]:
        """Returns the vectors of all layers, lowest first: L tensors [B, S, H].

        Args:
            x, sequences, k: those of `EncoderLayer`.
            last_positions: int32 [B, K + P], the only positions at which the last layer
                is computed; its vectors are then [B, K + P, H]. None: all.
        """
        outputs = []
        x = sequences.select(x)  # [R, H]; kernels may leave out padding.
        for layer in self.encoder_layers:
            # No later layer attends to the vectors of the last one, so only those that
            # are read have to be computed.
            if layer is self.encoder_layers[-1] and last_positions is not None:
                sequences = sequences.at(last_positions)
            # `sequences` and `k` are bound, so that remat has x as its only argument.
            compute = functools.partial(layer, sequences=sequences, k=k)
            x = keras.remat(compute)(x) if self.recomputes_layers else compute(x)
            # As [B, S, H] for the caller, and as rows for the next layer.
            vectors, x = sequences.output(x)
            outputs.append(vectors)
        return outputs


class Pooler(embeddings.Scope):
    """A dense tanh layer on the vector that represents a sequence.

    It is the vector of [CLS] or, in a left-to-right model, of the last piece
    (`computed_rows.pooled_positions`). [CLS] represents no word, so attention can
    gather there what concerns the whole text (section 3 of the BERT paper). The layer
    is not in the paper, but in the release's code and weights. Pretraining fits it to
    the next-sentence task alone; fine-tuning makes its output a useful vector of a
    text.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any = None):
        width = config.hidden_size
        dense = embeddings.dense(config, width, dtype=dtype)
        super().__init__("pooler", width=width, dtype=dtype, dense=dense)
        self.output_shape = (None, width)  # For `summary`.

    def call(self, vectors: numerics.Tensor, k: plain.Plain) -> numerics.Tensor:
        """Returns tanh(x W + b), [..., H] for [..., H]."""
        return k.activation("tanh", k.dense(self.dense, vectors))


@keras.saving.register_keras_serializable("bert_tf")
class BertModel(pretrained_model.PretrainedModel):
    """The encoder of "BERT: Pre-training of Deep Bidirectional Transformers".

    Args:
        config: BertConfig.
        **kwargs: `name`, `dtype` and `preprocessor`; see
            `pretrained_model.PretrainedModel`.

    Example:
        model = BertModel(BertConfig.named("bert-tiny"), name="bert")
        outputs = model({"input_ids": ids})  # ids: int32 [B, S].
        outputs["sequence_output"]           # [B, S, H]

    Source: BertModel of modeling.py, 2018.
    """

    def __init__(self, config: config_module.BertConfig, **kwargs: Any):
        super().__init__(config, **{"name": "bert", **kwargs})
        policy = self.dtype_policy
        self.embeddings = embeddings.Embeddings(config, dtype=policy)
        self.encoder = Encoder(config, dtype=policy)
        self.pooler = Pooler(config, dtype=policy)

    def call(
        self,
        features: numerics.Features,
        training: bool = False,
        dropout_keys: numerics.Tensor | None = None,
        output_positions: numerics.Tensor | None = None,
    ) -> numerics.Outputs:
        """Computes the vectors of a batch.

        Args:
            features: `input_ids`, and optionally `input_mask` (1: a real piece; default
                all 1) and `segment_ids` (default all 0), int32 [B, S]. The names in
                `input_features.ALIASES` are also accepted. If rows hold several
                sequences, also `sequence_ids` int32 [B, S] (the number of each piece's
                sequence; a piece sees its own sequence only), `position_ids` int32
                [B, S] (the position within the sequence) and `cls_positions` int32
                [B, K] (where each sequence starts; 0 if unused).
            training: whether dropout is active.
            dropout_keys: uint32 [B], from `dropout_masks.keys_of_examples`; default: if
                `training`, drawn from `seed_generator`.
            output_positions: int32 [B, P], the only positions whose vectors in the last
                layer are needed, besides those that the pooler reads; P may be 0. With
                them, `sequence_output` and the last of `all_encoder_layers` are
                [B, P, H]. Default: all positions.

        Returns:
            `sequence_output` [B, S, H], the last layer; `pooled_output` [B, H], or
            [B, K, H] with `cls_positions`; `all_encoder_layers`, a list of L tensors
            [B, S, H], lowest first; `embedding_output` [B, S, H]. Vectors of padding
            have no meaning; an average over S must leave them out.

        Raises:
            ValueError: a sequence longer than the position table, or an unknown
                feature.
        """
        k = kernels.current()  # Chosen with `kernels.use`.
        features = self.checked_features(features)
        keys = self.dropout_keys_in_use(features, training, dropout_keys)  # Or None.
        embedded = self.embeddings(features, dropout_keys=keys, k=k)  # [B, S, H]
        x = ops.reshape(embedded, (-1, self.config.hidden_size))  # [B * S, H]
        is_causal = self.config.is_causal
        visible = visible_positions(features, is_causal=is_causal)
        # The last layer is computed only where the pooler or the caller reads it.
        last = computed_rows.ReadPositions(features, output_positions, is_causal)
        *lower_layers, last_layer = self.encoder(
            x,
            sequences=k.sequences(x, visible, keys),
            k=k,
            last_positions=last.computed,
        )
        pooled, vectors = last.divide(last_layer)
        return {
            "sequence_output": vectors,
            "pooled_output": self.pooler(pooled, k=k),
            "all_encoder_layers": [*lower_layers, vectors],
            "embedding_output": embedded,
        }


def visible_positions(
    features: numerics.Features, *, is_causal: bool = False
) -> numerics.Tensor:
    """Returns which positions each position sees, as `plain.Sequences` takes it.

    Args:
        features: those of `BertModel.call`, without aliases. If rows hold several
            sequences, a position sees only its own.
        is_causal: whether a position sees only itself and what precedes it.

    Returns:
        int32 [B, T] if all positions see the same ones, else [B, F, T].
    """
    visible = numerics.input_mask_of(features)
    length = ops.shape(visible)[1]
    if "sequence_ids" in features:
        sequence_ids = features["sequence_ids"]
        is_same = ops.equal(sequence_ids[:, :, None], sequence_ids[:, None, :])
        visible = visible[:, None, :] * ops.cast(is_same, "int32")  # [B, F, T]
    if is_causal:
        position = ops.arange(length, dtype="int32")
        is_before = ops.cast(position[None, :] <= position[:, None], "int32")  # [F, T]
        visible = visible if len(visible.shape) == 3 else visible[:, None, :]
        visible = visible * is_before  # [B, F, T]
    return visible
