"""BertPretrainer and BertLeftToRight: the encoder with its pretraining heads.

Shape letters: B batch, S sequence, H hidden, M masked positions, V vocabulary.
"""

import types
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import heads
from bert_tf.modeling import input_features
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import plain


class Transform(embeddings.Scope):
    """Dense layer, activation and normalization before masked words are predicted."""

    def __init__(self, config: config_module.BertConfig, *, dtype: Any):
        width = config.hidden_size
        super().__init__(
            "transform",
            width=width,
            dtype=dtype,
            dense=embeddings.dense(config, width, dtype=dtype),
            normalization=embeddings.LayerNorm(config, dtype=dtype),
        )
        self.activation = numerics.activation(config.hidden_act)

    def call(self, inputs: numerics.Tensor) -> numerics.Tensor:
        """Returns [rows, H] for [rows, H]."""
        k = kernels.current()
        return k.norm_and_dropout(
            k.activation(self.activation, k.dense(self.dense, inputs)),
            self.normalization,
        )


class MaskedLanguageModelHead(keras.layers.Layer):
    """Scores every word piece at some positions, with the word embeddings as kernel.

    Sharing the table (section 3.4 of "Attention Is All You Need") saves V * H weights,
    a fifth of BERT-Base, and trains a piece's vector also where the piece is only
    predicted. The transform before it moves hidden states into the space of the
    embeddings, so that the encoder's last layer does not have to; fine-tuning discards
    it. The bias, which the table cannot provide, learns how frequent each piece is.

    Source: get_masked_lm_output of run_pretraining.py, 2018; section 3.1 of the paper.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any):
        super().__init__(name="predictions", dtype=dtype)
        self.config = config
        self.transform = Transform(config, dtype=dtype)

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights, except for the word embeddings."""
        self.transform.build()
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.config.vocab_size,), initializer="zeros"
        )

    def call(
        self, vectors: numerics.Tensor, word_embeddings: numerics.Tensor
    ) -> numerics.Tensor:
        """Returns logits [B, M, V], in the compute dtype.

        Args:
            vectors: [B, M, H], those of the last layer at the masked positions.
            word_embeddings: [V, H].
        """
        num_positions = ops.shape(vectors)[1]
        hidden = self.transform(ops.reshape(vectors, (-1, self.config.hidden_size)))
        table = ops.cast(word_embeddings, hidden.dtype)
        bias = ops.cast(self.output_bias, hidden.dtype)
        logits = kernels.current().vocabulary_scores(hidden, table, bias)  # [B * M, V]
        return ops.reshape(logits, (-1, num_positions, self.config.vocab_size))


class NextSentenceHead(keras.layers.Layer):
    """Scores the classes "is the next sentence" (0) and "is a random sentence" (1).

    Source: get_next_sentence_output of run_pretraining.py, 2018.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any):
        super().__init__(name="seq_relationship", dtype=dtype)
        self.config = config

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights, in the release's shape [2, H]."""
        self.output_weights, self.output_bias = heads.class_weights(
            self, 2, self.config.hidden_size
        )

    def call(self, pooled_output: numerics.Tensor) -> numerics.Tensor:
        """Returns float32 logits [..., 2] for [..., H]."""
        return heads.class_scores(pooled_output, self.output_weights, self.output_bias)


class PretrainingHeads(embeddings.Scope):
    """The masked-word head and, optionally, the next-sentence head, in scope `cls`."""

    def __init__(
        self, config: config_module.BertConfig, *, next_sentence: bool, dtype: Any
    ):
        heads_by_name = {"predictions": MaskedLanguageModelHead(config, dtype=dtype)}
        if next_sentence:
            heads_by_name["seq_relationship"] = NextSentenceHead(config, dtype=dtype)
        super().__init__("cls", dtype=dtype, **heads_by_name)
        self.output_shape = (None, None, config.vocab_size)  # For `summary`.


@keras.saving.register_keras_serializable("bert_tf")
class BertPretrainer(heads.TaskModel):
    """Predicts masked words, and whether the second segment follows the first.

    Args:
        config: BertConfig.
        next_sentence: False leaves out the next-sentence head, its loss and its metric.
            The pooler stays in the encoder, so that checkpoints have the same names;
            it then gets no gradient.
        **kwargs: `name`, `dtype` and so on; see `heads.TaskModel`.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S];
    `masked_lm_positions`, `masked_lm_ids` int32 [B, M]; `masked_lm_weights` float32
    [B, M]; `next_sentence_labels` int32 [B] or [B, 1], 1 for a random second segment.
    Rows that hold several sequences also have `sequence_ids`, `position_ids` and
    `cls_positions`, as for `BertModel`, and `next_sentence_labels` [B, K].

    Source: run_pretraining.py, 2018; section 3.1 of the paper.
    """

    config_arguments = ("next_sentence",)
    loss_names: tuple[str, ...] = ("masked_lm_loss", "next_sentence_loss")
    label_features = ("masked_lm_ids", "masked_lm_weights", "next_sentence_labels")
    label_axes = None
    exported_features = (*input_features.SEQUENCE, "masked_lm_positions")
    loss_epsilons = types.MappingProxyType(
        {"masked_lm_loss": numerics.MASKED_LM_EPSILON}
    )

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        next_sentence: bool = True,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        self.next_sentence = next_sentence
        if not next_sentence:
            self.loss_names = self.loss_names[:1]
        self.cls = PretrainingHeads(
            config, next_sentence=next_sentence, dtype=self.dtype_policy
        )

    def call(
        self,
        features: numerics.Features,
        training: bool = False,
        dropout_keys: numerics.Tensor | None = None,
        heads_only: bool = False,
    ) -> numerics.Outputs:
        """Computes the scores of both heads.

        Args:
            features: those of the class. Without `masked_lm_positions`, every position
                is scored, so that M is S.
            training: whether dropout is active.
            dropout_keys: uint32 [B]; default: drawn from `seed_generator`.
            heads_only: whether to leave out `sequence_output` and to compute the last
                layer only at the masked positions and those that the pooler reads.

        Returns:
            `masked_lm_logits` [B, M, V], float32, but in training in the compute dtype;
            `next_sentence_logits` float32 [B, 2] (not without that head);
            `sequence_output` [B, S, H] and `pooled_output` [B, H], in the compute
            dtype. If rows hold several sequences, the second is [B, K, 2] and the last
            [B, K, H].
        """
        features = self.checked_features(features)
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        positions = features.get("masked_lm_positions")
        encoded = self.bert(
            features,
            training=training,
            dropout_keys=keys,
            output_positions=positions if heads_only else None,
        )
        outputs = {}
        vectors = encoded["sequence_output"]
        if not heads_only:
            outputs["sequence_output"] = vectors
        if not heads_only and positions is not None:
            _, length, width = ops.shape(vectors)
            vectors = plain.gather_positions(
                ops.reshape(vectors, (-1, width)), positions, length
            )  # [B, M, H]
        logits = self.cls.predictions(vectors, self.bert.embeddings.word_embeddings)
        outputs |= {
            "pooled_output": encoded["pooled_output"],
            # The loss computes in float32 anyway, and this is its largest tensor.
            "masked_lm_logits": logits if training else ops.cast(logits, "float32"),
        }
        if self.next_sentence:
            pooled = encoded["pooled_output"]  # [B, H] or [B, K, H]
            outputs["next_sentence_logits"] = self.cls.seq_relationship(pooled)
        return outputs

    def training_outputs(
        self, features: numerics.Features, dropout_keys: numerics.Tensor | None = None
    ) -> numerics.Outputs:
        """Returns the outputs of `call`, in training and with `heads_only`."""
        return self(features, training=True, dropout_keys=dropout_keys, heads_only=True)

    def loss_weights(self, features: numerics.Features) -> numerics.Outputs:
        """Returns the number of masked words, and that of examples.

        The masked-word loss is a mean over all masked words of the global batch, not a
        mean of the examples' means: a long example counts for more than a short one.
        """
        weights = {"masked_lm_loss": ops.sum(_masked_weights(features))}
        if self.next_sentence:
            weights["next_sentence_loss"] = ops.sum(_next_sentence_weights(features))
        return weights

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns the summed cross-entropies of both heads."""
        logits = outputs["masked_lm_logits"]  # [B, M, V]
        losses = kernels.current().cross_entropy(
            ops.reshape(logits, (-1, self.config.vocab_size)),
            ops.reshape(features["masked_lm_ids"], (-1,)),
        )  # [B * M]
        weights = ops.reshape(_masked_weights(features), (-1,))
        sums = {"masked_lm_loss": ops.sum(losses * weights)}
        if self.next_sentence:
            losses = kernels.current().cross_entropy(
                ops.reshape(outputs["next_sentence_logits"], (-1, 2)),
                ops.reshape(features["next_sentence_labels"], (-1,)),
            )  # [B * K]
            weights = _next_sentence_weights(features)
            sums["next_sentence_loss"] = ops.sum(losses * weights)
        return sums

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns `masked_lm_accuracy` and `next_sentence_accuracy`."""
        metrics = {
            "masked_lm_accuracy": heads.accuracy(
                outputs["masked_lm_logits"],
                features["masked_lm_ids"],
                _masked_weights(features),
            )
        }
        if self.next_sentence:
            metrics["next_sentence_accuracy"] = heads.accuracy(
                ops.reshape(outputs["next_sentence_logits"], (-1, 2)),
                ops.reshape(features["next_sentence_labels"], (-1,)),
                _next_sentence_weights(features),
            )
        return metrics


@keras.saving.register_keras_serializable("bert_tf")
class BertLeftToRight(heads.TaskModel):
    """Predicts every piece of a text but the first from the pieces before it.

    This is the paper's ablation "LTR & No NSP" (Table 5). It reads the records of the
    masked-word task and puts the masked words back, so that all ablations train on the
    same text from one kind of file.

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
        self.cls = PretrainingHeads(
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


def _masked_weights(features):
    """Returns float32 [B, M]: 1 for every masked position that counts."""
    weights = ops.cast(features["masked_lm_weights"], "float32")
    return weights * heads.example_weights(features)[:, None]


def _next_sentence_weights(features):
    """Returns float32 [B], or [B * K]: 1 for every sequence that counts."""
    weights = heads.example_weights(features)
    if "sequence_ids" not in features:
        return weights
    number = ops.arange(ops.shape(features["cls_positions"])[1], dtype="int32")  # [K]
    is_used = number < ops.max(features["sequence_ids"], axis=1)[:, None]  # [B, K]
    return ops.reshape(ops.cast(is_used, "float32") * weights[:, None], (-1,))
