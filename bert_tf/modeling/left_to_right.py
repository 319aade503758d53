"""BertLeftToRight: pretraining that predicts the next piece.

The paper's ablation "LTR & No NSP" (Table 5): a position sees only itself and what
precedes it. It reads the records of the masked-word task and puts the masked words
back, so that all ablations train on the same text from one kind of file.

Shape letters: B batch, S sequence, H hidden, M masked positions, V vocabulary.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
from bert_tf.modeling import pretrainer


@keras.saving.register_keras_serializable("bert_tf")
class BertLeftToRight(heads.TaskModel):
    """Predicts every piece of a text but the first from the pieces before it.

    Its weights are those of a `BertPretrainer` without the next-sentence head. It
    needs a configuration whose `attention` is "causal".

    Args:
        config: BertConfig with causal attention.
        **kwargs: `name`, `dtype` and so on; see `heads.TaskModel`.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S], which are also the
    labels. If pieces are masked, `masked_lm_positions`, `masked_lm_ids` int32 [B, M]
    and `masked_lm_weights` float32 [B, M] restore them.

    Raises:
        ValueError: the configuration's attention is not causal.

    Source: section 5.1 of the paper.
    """

    loss_names = ("next_piece_loss",)

    def __init__(self, config: config_module.BertConfig, **kwargs: Any):
        if not config.is_causal:
            raise ValueError(
                f"BertLeftToRight needs a configuration with attention 'causal', got "
                f"{config.attention!r}: every piece would see the next one."
            )
        super().__init__(config, **kwargs)
        self.cls = pretrainer.PretrainingHeads(
            config, next_sentence=False, dtype=self.dtype_policy
        )

    def task_outputs(
        self, features: numerics.Features, keys: numerics.Tensor | None
    ) -> numerics.Outputs:
        """Computes how well each next piece is predicted.

        Returns:
            `next_piece_losses` float32 [B, S], the negative log-probability of the
            piece after each position; `next_piece_hits` float32 [B, S], 1 where that
            piece has the highest score (both meaningless where no piece follows);
            `sequence_output` [B, S, H] and `pooled_output` [B, H], in the compute
            dtype.
        """
        ids = original_ids(features)
        encoded = self.bert(
            {**features, "input_ids": ids},
            training=keys is not None,
            dropout_keys=keys,
        )
        vectors = encoded["sequence_output"]
        shape = (-1, ops.shape(ids)[1])
        vectors = ops.reshape(vectors, (-1, self.config.hidden_size))  # [B * S, H]
        head = self.cls.predictions
        vectors = head.transform(vectors)
        losses, hits = kernels.current().vocabulary_losses(
            vectors,
            # Without the rows that pad the table for the hardware.
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
            "next_piece_losses": ops.reshape(losses, shape),
            "next_piece_hits": ops.reshape(hits, shape),
        }

    def loss_weights(self, features: numerics.Features) -> numerics.Outputs:
        """Returns the number of predicted pieces."""
        return {"next_piece_loss": ops.sum(_next_piece_weights(features))}

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns the summed cross-entropy of the predicted pieces."""
        weights = _next_piece_weights(features)
        return {"next_piece_loss": ops.sum(outputs["next_piece_losses"] * weights)}

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns `next_piece_accuracy`: the numbers of hits and of pieces."""
        hits, weights = outputs["next_piece_hits"], _next_piece_weights(features)
        return {"next_piece_accuracy": heads.sum_and_weight(hits, weights)}


def original_ids(features: numerics.Features) -> numerics.Tensor:
    """Returns the pieces as they were before masking, int32 [B, S].

    Args:
        features: `input_ids` int32 [B, S] and, if pieces are masked,
            `masked_lm_positions`, `masked_lm_ids` and `masked_lm_weights` [B, M].
    """
    ids = ops.cast(features["input_ids"], "int32")
    if "masked_lm_ids" not in features:
        return ids
    all_positions = ops.arange(ops.shape(ids)[1], dtype="int32")  # [S]
    positions = ops.cast(features["masked_lm_positions"], "int32")
    # Unused entries have weight 0 and position 0, which is that of [CLS].
    is_used = ops.greater(features["masked_lm_weights"], 0)
    is_masked = ops.logical_and(
        ops.equal(positions[:, :, None], all_positions), is_used[:, :, None]
    )  # [B, M, S]
    labels = ops.cast(features["masked_lm_ids"], "int32")[:, :, None]
    original = ops.max(ops.where(is_masked, labels, 0), axis=1)
    return ops.where(ops.any(is_masked, axis=1), original, ids)


def _next_piece_weights(features):
    """Returns float32 [B, S]: 1 where a piece of the same sequence follows."""
    follows = ops.equal(numerics.input_mask_of(features)[:, 1:], 1)
    if "sequence_ids" in features:
        numbers = features["sequence_ids"]
        is_same = ops.equal(numbers[:, 1:], numbers[:, :-1])
        follows = ops.logical_and(follows, is_same)
    weights = ops.pad(ops.cast(follows, "float32"), ((0, 0), (0, 1)))
    return weights * heads.example_weights(features)[:, None]
