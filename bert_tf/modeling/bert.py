"""BertModel: token ids in, vectors out.

Shape letters: B batch, S sequence, H hidden, N heads, D = H / N, F from-sequence, T
to-sequence, K sequences per row, L layers, P chosen positions. Vectors are kept as
rows, [B * S, H], so that every product with weights is a product of two matrices. A
kernel may leave out the rows of padding, or compute chosen positions only.

`k` is the set of kernels that a call uses: how each equation is computed on the device
at hand. `kernels.plain` has the formula of each.
"""

import functools
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import base
from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import input_names
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import plain

_DROPOUT_SITES_PER_LAYER = 3


class EncoderLayer(keras.layers.Layer):
    """An attention and a feed-forward sublayer, each with a residual connection.

    In attention, every position collects information from all positions that it sees.
    The feed-forward sublayer then transforms each position by itself.

    As in the original Transformer, the normalization comes after the sum. Later models
    normalize before the sublayer, which trains more steadily at large rates; BERT
    instead needs the warm-up. The order is part of what released weights compute, so it
    is not an option.

    Source: section 3 of "Attention Is All You Need" (Vaswani et al., 2017);
    attention_layer and transformer_model of modeling.py, 2018.
    """

    def __init__(
        self, config: config_module.BertConfig, index: int, *, dtype: Any = None
    ):
        super().__init__(name=f"layer_{index}", dtype=dtype)
        config.check_heads()
        self.config = config
        self.first_site = (
            embeddings.EMBEDDINGS_DROPOUT_SITE + 1 + _DROPOUT_SITES_PER_LAYER * index
        )
        policy = self.dtype_policy
        hidden, wide = config.hidden_size, config.intermediate_size
        scope = functools.partial(embeddings.Scope, dtype=policy)
        dense = functools.partial(embeddings.Dense, config, dtype=policy)
        norm = functools.partial(embeddings.LayerNorm, config, dtype=policy)
        self.attention = scope(
            "attention",
            self_attention=scope(
                "self",
                query=dense(hidden, name="query"),
                key=dense(hidden, name="key"),
                value=dense(hidden, name="value"),
            ),
            residual_output=scope("output", dense=dense(hidden), normalization=norm()),
        )
        self.intermediate = scope("intermediate", dense=dense(wide))
        self.residual_output = scope(
            "output", dense=dense(hidden, width=wide), normalization=norm()
        )

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        self.attention.build()
        self.intermediate.build()
        self.residual_output.build()

    def call(
        self, x: numerics.Tensor, sequences: plain.Sequences, k: plain.Plain
    ) -> numerics.Tensor:
        """Returns the layer's vectors, [B * F, H].

        Args:
            x: [B * T, H], in the compute dtype.
            sequences: which positions are computed, and what they see.
            k: the kernels.
        """
        config = self.config
        inner, outer = self.attention.self_attention, self.attention.residual_output
        last = self.residual_output
        drop = functools.partial(sequences.dropout, rate=config.hidden_dropout_prob)

        # Dropout(softmax(Q K^T / sqrt(D) + mask)) V, in each of N heads (3.2.1).
        # The dot product of two vectors of D independent components with variance 1
        # has the variance D. Divided by sqrt(D), scores stay where the softmax has a
        # useful gradient, for any head size. The mask is 0 where a position sees
        # another one, and else -10000.
        queries = sequences.queries(x)  # [B * F, H]
        context = k.attend(
            k.dense(inner.query, queries),
            k.dense(inner.key, x),
            k.dense(inner.value, x),
            sequences,
            num_heads=config.num_attention_heads,
            dropout=sequences.dropout_of_weights(
                self.first_site, config.attention_probs_dropout_prob
            ),
        )  # [B * F, H]

        # LayerNorm(x + Dropout(Sublayer(x))), here and for the second sublayer below.
        attended = k.add_and_norm(
            k.dense(outer.dense, context),
            queries,
            outer.normalization,
            drop(self.first_site + 1),
        )  # [B * F, H]

        # FFN(x) = gelu(x W1 + b1) W2 + b2 (section 3.3). The inner layer is four times
        # as wide in all released models.
        activation = numerics.activation(config.hidden_act)
        wide = k.activation(activation, k.dense(self.intermediate.dense, attended))
        return k.add_and_norm(
            k.dense(last.dense, wide),
            attended,
            last.normalization,
            drop(self.first_site + 2),
        )  # [B * F, H]


class Encoder(keras.layers.Layer):
    """A stack of L encoder layers.

    Attributes:
        recomputes_layers: False by default. True keeps only each layer's input and
            recomputes the layer in the backward pass, which needs much less memory and
            a third more time. Gradients stay the same, because dropout masks are a
            function of their keys.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any = None):
        super().__init__(name="encoder", dtype=dtype)
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
        x: numerics.Tensor,
        sequences: plain.Sequences,
        k: plain.Plain,
        output_positions: numerics.Tensor | None = None,
    ) -> list[numerics.Tensor]:
        """Returns the vectors of all layers, lowest first: L tensors [B * S, H].

        Vectors of padding have no meaning. They may be 0 in training.

        Args:
            x, sequences, k: those of `EncoderLayer`.
            output_positions: int32 [B, P], the only positions at which the last layer
                is computed; its result is then [B * P, H]. None: all.
        """
        outputs = []
        x = sequences.select(x)
        for layer in self.encoder_layers:
            # No later layer attends to the vectors of the last one, so only those that
            # are read have to be computed.
            if layer is self.encoder_layers[-1] and output_positions is not None:
                sequences = sequences.at(output_positions)
            # Bound, so that remat differentiates with respect to x only.
            compute = functools.partial(layer, sequences=sequences, k=k)
            x = keras.remat(compute)(x) if self.recomputes_layers else compute(x)
            outputs.append(sequences.output(x))
        return outputs


class Pooler(keras.layers.Layer):
    """Passes the vector at one position of each sequence through a dense tanh layer.

    The position is that of [CLS], or in a model that reads from left to right, that of
    the last piece. [CLS] represents no word, so attention can collect there
    what concerns the whole text (section 3 of the paper). The dense tanh layer comes
    from the release's code. Pretraining fits it to the next-sentence task alone, so its
    output becomes a useful vector of a text only through fine-tuning.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any = None):
        super().__init__(name="pooler", dtype=dtype)
        self.dense = embeddings.Dense(
            config, config.hidden_size, dtype=self.dtype_policy
        )
        self.output_shape = (None, config.hidden_size)  # For `summary`.

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        self.dense.build()

    def call(self, vectors: numerics.Tensor, k: plain.Plain) -> numerics.Tensor:
        """Returns tanh(x W + b), [..., H] for [..., H]."""
        return k.activation("tanh", k.dense(self.dense, vectors))


@keras.saving.register_keras_serializable("bert_tf")
class BertModel(base.BaseModel):
    """The encoder of "BERT: Pre-training of Deep Bidirectional Transformers".

    Args:
        config: BertConfig.
        name: the first part of its variables' names.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; default: the global one.

    Example:
        model = BertModel(BertConfig.named("bert-tiny"), name="bert")
        outputs = model({"input_ids": ids})  # ids: int32 [B, S].
        outputs["sequence_output"]           # [B, S, H]

    Source: BertModel of modeling.py, 2018.
    """

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str = "bert",
        dtype: Any = None,
        **kwargs: Any,
    ):
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        policy = self.dtype_policy
        self.embeddings = embeddings.Embeddings(config, dtype=policy)
        self.encoder = Encoder(config, dtype=policy)
        self.pooler = Pooler(config, dtype=policy)

    def build(self, input_shape: Any = None) -> None:
        """Creates all weights; needs no data."""
        # The shapes of the inputs, without which `summary` shows no shapes.
        self.embeddings.build((None, None))
        self.encoder.build((None, None, self.config.hidden_size))
        self.pooler.build((None, None, self.config.hidden_size))

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
                `input_names.ALIASES` are also accepted. If rows hold several sequences,
                also `sequence_ids` int32 [B, S] (the number of each piece's sequence; a
                piece sees its own sequence only), `position_ids` int32 [B, S] (the
                position within the sequence) and `cls_positions` int32 [B, K] (where
                each sequence starts; 0 if unused).
            training: whether dropout is active.
            dropout_keys: uint32 [B], from `dropout_masks.keys_of_examples`; default:
                drawn from `seed_generator`.
            output_positions: int32 [B, P], the only positions whose vectors in the last
                layer are needed, besides those that the pooler reads; P may be 0. With
                them, `sequence_output` and the last of `all_encoder_layers` are
                [B, P, H]. Default: all positions.

        Returns:
            `sequence_output` [B, S, H], the last layer; `pooled_output` [B, H], or
            [B, K, H] with `cls_positions`; `all_encoder_layers`, a list of L tensors
            [B, S, H], lowest first; `embedding_output` [B, S, H]. Vectors of padding
            have no meaning, and those of the layers may be 0 in training: a head that
            averages over S must use the mask.

        Raises:
            ValueError: a sequence longer than the position table, or an unknown
                feature.
        """
        k = kernels.current()
        features = self.checked_features(features)
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        input_ids = features["input_ids"]  # [B, S]
        length = ops.shape(input_ids)[1]
        if isinstance(length, int):
            self.config.check_sequence_length(length)
        segment_ids = features.get("segment_ids")
        x = self.embeddings(
            input_ids,
            ops.zeros_like(input_ids) if segment_ids is None else segment_ids,
            features.get("position_ids"),
            dropout=dropout_masks.at(
                keys,
                embeddings.EMBEDDINGS_DROPOUT_SITE,
                self.config.hidden_dropout_prob,
            ),
            k=k,
        )  # [B * S, H]
        visible = visible_positions(features, is_causal=self.config.is_causal)
        positions = output_positions
        if positions is not None:
            first = self._pooled_positions(features)  # [B, K]
            positions = ops.concatenate([first, ops.cast(positions, "int32")], axis=1)
        layers = self.encoder(
            x,
            sequences=k.sequences(x, visible, keys),
            k=k,
            output_positions=positions,
        )
        lower_layers = [self._by_sequence(layer, length) for layer in layers[:-1]]
        if positions is None:
            vectors = self._by_sequence(layers[-1], length)
            pooled = self._pooled_vectors(vectors, features)
        else:
            vectors = self._by_sequence(layers[-1], ops.shape(positions)[1])
            num_pooled = ops.shape(first)[1]
            is_packed = "cls_positions" in features
            pooled = vectors[:, :num_pooled] if is_packed else vectors[:, 0]
            vectors = vectors[:, num_pooled:]  # [B, P, H]
        return {
            "sequence_output": vectors,
            "pooled_output": self.pooler(pooled, k=k),
            "all_encoder_layers": [*lower_layers, vectors],
            "embedding_output": self._by_sequence(x, length),
        }

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",  # noqa: A002, Keras's name
        verbose: Any = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the model for inference; see `BaseModel.export`.

        Formats have no lists of outputs, so the layers are `all_encoder_layers_0`, ...
        """
        signature = input_signature or self.input_signature()
        inputs = {
            name: keras.Input(batch_shape=tuple(spec.shape), dtype="int32", name=name)
            for name, spec in signature[0].items()
        }
        outputs = self(inputs)
        for number, layer in enumerate(outputs.pop("all_encoder_layers")):
            outputs[f"all_encoder_layers_{number}"] = layer
        keras.Model(inputs, outputs).export(
            filepath,
            format=format,
            verbose=verbose,
            input_signature=signature,
            **kwargs,
        )

    def _by_sequence(self, x, length):
        """Returns [B, S, H] of [B * S, H]."""
        return ops.reshape(x, (-1, length, self.config.hidden_size))

    def _pooled_vectors(self, vectors, features):
        """Returns what the pooler reads: [B, H], or [B, K, H] with `cls_positions`."""
        is_packed = "cls_positions" in features
        if not is_packed and not self.config.is_causal:
            return vectors[:, 0]
        positions = self._pooled_positions(features)  # [B, K]
        vectors = ops.take_along_axis(vectors, ops.expand_dims(positions, -1), axis=1)
        return vectors if is_packed else vectors[:, 0]

    def _pooled_positions(self, features):
        """Returns int32 [B, K]; K is 1 unless there are `cls_positions`.

        Under causal attention [CLS] comes first and sees only itself, so its vector is
        the same for every text. The last real piece of a sequence has seen them all.
        """
        input_mask = input_names.input_mask_of(features)
        first = features.get("cls_positions")
        if first is None:
            first = ops.zeros((ops.shape(input_mask)[0], 1), dtype="int32")
        if not self.config.is_causal:
            return ops.cast(first, "int32")
        sequence_ids = ops.zeros_like(input_mask)
        if "cls_positions" in features:
            sequence_ids = features["sequence_ids"]
        numbers = ops.take_along_axis(sequence_ids, first, axis=1)  # [B, K]
        is_same = ops.equal(sequence_ids[:, None, :], numbers[:, :, None])
        is_real = ops.cast(input_mask, "bool")[:, None, :]
        position = ops.arange(ops.shape(input_mask)[1], dtype="int32")
        real = ops.where(ops.logical_and(is_same, is_real), position, 0)  # [B, K, S]
        return ops.max(real, axis=-1)


def visible_positions(
    features: numerics.Features, *, is_causal: bool = False
) -> numerics.Tensor:
    """Returns which positions each position sees, as `plain.Sequences` takes it.

    Args:
        features: those of `BertModel.call`, under our names. A position sees its own
            sequence only if rows hold several.
        is_causal: whether a position sees only itself and what precedes it.

    Returns:
        int32 [B, T] if all positions see the same ones, else [B, F, T].
    """
    visible = input_names.input_mask_of(features)
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
