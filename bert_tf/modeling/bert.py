"""BertModel: token ids in, vectors out.

Shape letters: B batch, S sequence, H hidden, K sequences per row, P chosen positions.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import attention
from bert_tf.modeling import base
from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import encoder
from bert_tf.modeling import numerics


class Pooler(keras.layers.Layer):
    """Passes the vector at one position of each sequence through a dense tanh layer.

    The position is that of [CLS]. It represents no word, so attention can collect there
    what concerns the whole text (section 3 of the paper). The dense tanh layer comes
    from the release's code. Pretraining fits it to the next-sentence task alone, so its
    output becomes a useful vector of a text only through fine-tuning.
    """

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str = "pooler",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.dense = attention.dense(
            config.hidden_size, config, name="dense", dtype=self.dtype_policy
        )

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        self.dense.build((None, self.config.hidden_size))

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of a text's vector, for `summary`."""
        return (None, self.config.hidden_size)

    def call(self, vectors: numerics.Tensor) -> numerics.Tensor:
        """Returns [..., H] for [..., H], the vectors at those positions."""
        return ops.tanh(self.dense(vectors))


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
        self.encoder = encoder.Encoder(config, dtype=policy)
        self.pooler = Pooler(config, dtype=policy)

    def build(self, input_shape: Any = None) -> None:
        """Creates all weights; needs no data."""
        # The shapes of the inputs, without which `summary` shows no shapes.
        vectors = (None, None, self.config.hidden_size)  # [B, S, H]
        self.embeddings.build((None, None))
        self.encoder.build(vectors)
        self.pooler.build(vectors)

    def call(
        self,
        features: numerics.Features,
        training: bool = False,
        dropout_keys: numerics.Tensor | None = None,
        return_attention_weights: bool = False,
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
            dropout_keys: uint32 [B], from `numerics.dropout_keys`; default: drawn from
                `seed_generator`.
            return_attention_weights: whether to return `attention_weights` too.
            output_positions: int32 [B, P], the only positions whose vectors in the last
                layer are needed, besides those that the pooler reads; P may be 0. With
                them, `sequence_output` and the last of `all_encoder_layers` are
                [B, P, H], and `return_attention_weights` is refused. Default: all
                positions.

        Returns:
            `sequence_output` [B, S, H], the last layer; `pooled_output` [B, H], or
            [B, K, H] with `cls_positions`; `all_encoder_layers`, a list of L tensors
            [B, S, H], lowest first; `embedding_output` [B, S, H]. On request
            `attention_weights`, a list of L tensors, float32 [B, N, S, S]: for each
            head and piece (third axis) the weights of all pieces (fourth axis), which
            sum to 1. Vectors of padding have no meaning, and those of the layers may
            be 0 in training: a head that averages over S must use the mask.

        Raises:
            ValueError: a sequence longer than the position table, an unknown feature,
                or attention weights together with `output_positions`.
        """
        if return_attention_weights and output_positions is not None:
            raise ValueError(
                "output_positions cannot be combined with return_attention_weights, "
                "which needs all positions; pass one of them."
            )
        features = self.checked_features(features)
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        input_ids = features["input_ids"]
        length = ops.shape(input_ids)[1]
        if isinstance(length, int):
            self.config.check_sequence_length(length)
        input_mask = attention.input_mask_of(features)
        segment_ids = features.get("segment_ids")
        if segment_ids is None:
            segment_ids = ops.zeros_like(input_ids)

        embedded = self.embeddings(
            input_ids,
            segment_ids,
            dropout_keys=keys,
            position_ids=features.get("position_ids"),
        )
        positions = output_positions
        if positions is not None:
            pooled_positions = self._pooled_positions(features, input_mask)  # [B, K]
            positions = ops.concatenate(
                [pooled_positions, ops.cast(positions, "int32")], axis=1
            )
        layers = self.encoder(
            embedded,
            attention.visible_positions(
                input_mask,
                sequence_ids=features.get("sequence_ids"),
                is_causal=self.config.is_causal,
            ),
            dropout_keys=keys,
            return_attention_weights=return_attention_weights,
            output_positions=positions,
        )
        attention_weights = {}
        if return_attention_weights:
            layers, weights = layers
            attention_weights = {"attention_weights": weights}
        lower_layers = [self._by_sequence(layer, length) for layer in layers[:-1]]
        if positions is None:
            vectors = self._by_sequence(layers[-1], length)
            pooled = self._pooled_vectors(vectors, features, input_mask)
        else:
            vectors = self._by_sequence(layers[-1], ops.shape(positions)[1])
            num_pooled = ops.shape(pooled_positions)[1]
            is_packed = "cls_positions" in features
            pooled = vectors[:, :num_pooled] if is_packed else vectors[:, 0]
            vectors = vectors[:, num_pooled:]  # [B, P, H]
        return {
            "sequence_output": vectors,
            "pooled_output": self.pooler(pooled),
            "all_encoder_layers": [*lower_layers, vectors],
            "embedding_output": self._by_sequence(embedded, length),
            **attention_weights,
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

    def _by_sequence(self, vectors, length):
        """Returns [B, S, H] of [B * S, H]."""
        return ops.reshape(vectors, (-1, length, self.config.hidden_size))

    def _pooled_vectors(self, vectors, features, input_mask):
        """Returns what the pooler reads: [B, H], or [B, K, H] with `cls_positions`."""
        is_packed = "cls_positions" in features
        if not is_packed and not self.config.is_causal:
            return vectors[:, 0]
        positions = self._pooled_positions(features, input_mask)  # [B, K]
        vectors = ops.take_along_axis(vectors, ops.expand_dims(positions, -1), axis=1)
        return vectors if is_packed else vectors[:, 0]

    def _pooled_positions(self, features, input_mask):
        """Returns int32 [B, K]; K is 1 unless there are `cls_positions`."""
        first = features.get("cls_positions")
        if first is None:
            first = ops.zeros((ops.shape(input_mask)[0], 1), dtype="int32")
        # Under causal attention [CLS] comes first and sees only itself, so its vector
        # is the same for every text. The last piece is the one that has seen them all.
        if self.config.is_causal:
            sequence_ids = ops.zeros_like(input_mask)
            if "cls_positions" in features:
                sequence_ids = features["sequence_ids"]
            return last_positions(input_mask, first, sequence_ids)
        return ops.cast(first, "int32")


def last_positions(
    input_mask: numerics.Tensor,
    first_positions: numerics.Tensor,
    sequence_ids: numerics.Tensor,
) -> numerics.Tensor:
    """Returns the position of the last real piece of each sequence, int32 [B, K].

    Args:
        input_mask: integer [B, S], 1 for a real piece.
        first_positions: int32 [B, K], where each sequence starts.
        sequence_ids: int32 [B, S], the number of each piece's sequence.
    """
    numbers = ops.take_along_axis(sequence_ids, first_positions, axis=1)  # [B, K]
    is_own = ops.logical_and(
        ops.equal(sequence_ids[:, None, :], numbers[:, :, None]),
        ops.cast(input_mask, "bool")[:, None, :],
    )  # [B, K, S]
    position = ops.arange(ops.shape(input_mask)[1], dtype="int32")
    return ops.max(ops.where(is_own, position, 0), axis=-1)
