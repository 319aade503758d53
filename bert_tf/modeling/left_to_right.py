"""BertLeftToRight: the encoder that learns to say which piece comes next.

The paper's ablation "LTR & No NSP" (Table 5): a position sees itself and what is before
it. Records are those of the masked-word task; what their masks hide is put back.

Shape letters: B batch, S sequence, H hidden, M masked positions, V vocabulary.
"""

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import heads
from bert_tf.modeling import pretrainer
from bert_tf.modeling import vocabulary_losses


@keras.saving.register_keras_serializable("bert_tf")
class BertLeftToRight(heads.TaskModel):
    """Predicts every piece of a text, the first one apart, from those before it.

    Its weights have the names of `BertPretrainer` without the next-sentence head; what
    makes the difference is `attention` "causal" in the configuration.

    Args:
        config: BertConfig with causal attention.
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]; where pieces are
    masked `masked_lm_positions`, `masked_lm_ids` int32 [B, M] and `masked_lm_weights`
    float32 [B, M], which say what was there. There are no labels: the pieces are.

    Raises:
        ValueError: the configuration's attention is not causal.

    Source: section 5.1 of the paper.
    """

    loss_names = ("next_piece_loss",)

    def __init__(self, config, *, name="bert_left_to_right", dtype=None, **kwargs):
        if not config.is_causal:
            raise ValueError(
                f"BertLeftToRight needs a configuration with attention 'causal', got "
                f"{config.attention!r}: every piece would see the one to be predicted."
            )
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        policy = self.dtype_policy
        self.bert = bert.BertModel(config, name="bert", dtype=policy)
        self.cls = pretrainer.PretrainingHeads(
            config, next_sentence=False, name="cls", dtype=policy
        )

    def build(self, input_shape=None):
        """Creates all weights; needs no data."""
        self.bert.build()
        self.cls.build()

    def call(self, features, training=False, dropout_keys=None):
        """Computes how well every next piece is predicted.

        Args:
            features: as the class documents; `input_mask` and `segment_ids` where
                they are not all 1 and all 0.
            training: bool, whether to drop out.
            dropout_keys: uint32 [B] of `numerics.dropout_keys`, or None, in `fit` and
                without training.

        Returns:
            A dict: `next_piece_losses` float32 [B, S], minus the log-probability of
            the piece after each position; `next_piece_hits` float32 [B, S], 1 where
            it is the likeliest one (both are of no meaning where no piece follows);
            `sequence_output` [B, S, H], `pooled_output` [B, H], in the compute dtype.

        Raises:
            ValueError: training needs keys and there are none, or S is longer than
                the model's position table.
        """
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        ids = original_ids(features)
        encoded = self.bert(
            {**features, "input_ids": ids}, training=training, dropout_keys=keys
        )
        vectors = encoded["sequence_output"]
        shape = (-1, ops.shape(ids)[1])
        vectors = ops.reshape(vectors, (-1, self.config.hidden_size))  # [B * S, H]
        head = self.cls.predictions
        vectors = head.transform(vectors)
        rows = (
            vectors,
            # Rows that pad the table for the hardware are of no piece.
            ops.cast(
                self.bert.embeddings.word_embeddings[: self.config.vocab_size],
                vectors.dtype,
            ),
            ops.cast(head.output_bias, vectors.dtype),
            ops.reshape(ops.roll(ids, -1, axis=1), (-1,)),
        )
        return {
            "sequence_output": encoded["sequence_output"],
            "pooled_output": encoded["pooled_output"],
            "next_piece_losses": ops.reshape(vocabulary_losses.losses(*rows), shape),
            "next_piece_hits": ops.reshape(vocabulary_losses.hits(*rows), shape),
        }

    def loss_weights(self, features):
        """Returns the number of pieces that are predicted.

        Args:
            features: as `call` takes them; `is_real_example` float32 [B] where there
                is padding.

        Returns:
            A dict: `next_piece_loss`, float32 scalar.
        """
        return {"next_piece_loss": ops.sum(_next_piece_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed cross-entropy of all pieces that are predicted.

        Args:
            features: as `loss_weights` takes them.
            outputs: what `call` returned for them.

        Returns:
            A dict: `next_piece_loss`, float32 scalar.
        """
        weights = _next_piece_weights(features)
        return {"next_piece_loss": ops.sum(outputs["next_piece_losses"] * weights)}

    def metric_sums(self, features, outputs):
        """Returns what the accuracy is made of.

        Args:
            features, outputs: as `loss_sums` takes them.

        Returns:
            A dict: `next_piece_accuracy`, a pair of float32 scalars: hits and pieces.
        """
        weights = _next_piece_weights(features)
        hits = ops.sum(outputs["next_piece_hits"] * weights)
        return {"next_piece_accuracy": (hits, ops.sum(weights))}


def original_ids(features):
    """Returns int32 [B, S]: the pieces as they were before masking.

    Args:
        features: dict with `input_ids` int32 [B, S] and, where they are masked,
            `masked_lm_positions`, `masked_lm_ids` and `masked_lm_weights` [B, M].
    """
    ids = ops.cast(features["input_ids"], "int32")
    if "masked_lm_ids" not in features:
        return ids
    place = ops.arange(ops.shape(ids)[1], dtype="int32")  # [S]
    positions = ops.cast(features["masked_lm_positions"], "int32")
    is_chosen = ops.greater(features["masked_lm_weights"], 0)
    # Unused places of the columns hold position 0, where [CLS] is.
    is_there = ops.logical_and(
        ops.equal(positions[:, :, None], place), is_chosen[:, :, None]
    )  # [B, M, S]
    labels = ops.cast(features["masked_lm_ids"], "int32")[:, :, None]
    original = ops.max(ops.where(is_there, labels, 0), axis=1)
    return ops.where(ops.any(is_there, axis=1), original, ids)


def _next_piece_weights(features):
    """Returns float32 [B, S]: 1 where a piece of the same sequence follows."""
    ids = features["input_ids"]
    mask = features.get("input_mask")
    is_real = ops.ones_like(ids) if mask is None else mask
    follows = ops.equal(is_real[:, 1:], 1)
    if "sequence_ids" in features:
        numbers = features["sequence_ids"]
        is_same = ops.equal(numbers[:, 1:], numbers[:, :-1])
        follows = ops.logical_and(follows, is_same)
    weights = ops.pad(ops.cast(follows, "float32"), ((0, 0), (0, 1)))
    return weights * heads.example_weights(features)[:, None]
