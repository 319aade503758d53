"""BertMultipleChoice: the encoder with one score per ending.

Shape letters: B batch, C endings, S sequence, H hidden.
"""

import keras
from keras import ops

from bert_tf.modeling import heads
from bert_tf.modeling import keras_model
from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks


@keras.saving.register_keras_serializable("bert_tf")
class BertMultipleChoice(heads.TaskModel):
    """Chooses one of several endings.

    Every ending forms a sequence of its own, with the beginning of the story as its
    first segment. One vector scores all sequences, so a model takes any number of
    endings (section 4.4 of the paper).

    Args:
        config: BertConfig.
        name: see `heads.TaskModel`.
        dtype: see `heads.TaskModel`.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, C, S]. For losses and
    metrics: `label_ids` int32 [B], the correct ending.
    """

    reads_all_positions = False
    loss_names: tuple[str, ...] = ("choice_loss",)
    label_features = ("label_ids",)
    logits_outputs = ("logits",)
    answer_output = "probabilities"
    sequence_features = keras_model.SEQUENCE
    num_exported_axes = 3
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def _create_weights(self):
        self.bert.build((None, None))
        # The layout of the release's class heads, with one class.
        self.output_weights, self.output_bias = heads.class_weights(
            self, 1, self.config.hidden_size
        )

    def call(
        self,
        features: numerics.Features,
        training: bool = False,
        dropout_keys: numerics.Tensor | None = None,
    ) -> numerics.Outputs:
        """Returns `logits` and `probabilities`, float32 [B, C].

        Raises:
            ValueError: `input_ids` does not have three axes; see also `TaskModel`.
        """
        features = self.checked_features(features)
        shape = ops.shape(features["input_ids"])
        if len(shape) != 3:
            raise ValueError(
                f"input_ids has {len(shape)} axes; expected 3: [examples, endings, "
                "pieces]."
            )
        _, num_endings, length = shape
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        if keys is not None:
            keys = dropout_masks.keys_of_parts(keys, num_endings)  # [B * C]
        flat = {
            name: ops.reshape(features[name], (-1, length))  # [B * C, S]
            for name in self.sequence_features
            if name in features
        }
        scores = self.score_endings(flat, training=training, dropout_keys=keys)
        logits = ops.reshape(scores, (-1, num_endings))  # [B, C]
        return {"logits": logits, "probabilities": numerics.softmax(logits)}

    def score_endings(
        self,
        features: numerics.Features,
        training: bool = False,
        dropout_keys: numerics.Tensor | None = None,
    ) -> numerics.Tensor:
        """Returns one score per sequence, float32 [rows].

        Args:
            features: those of `call`, but [rows, S].
            training: whether dropout is active.
            dropout_keys: uint32 [rows], or None for no dropout.
        """
        encoded = self.bert(
            features,
            training=training,
            dropout_keys=dropout_keys,
            output_positions=heads.no_positions(features),
        )
        pooled = self.with_task_dropout(
            encoded["pooled_output"], dropout_keys
        )  # [rows, H]
        return heads.class_scores(pooled, self.output_weights, self.output_bias)[:, 0]

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns the summed cross-entropy of the endings."""
        losses = heads.class_losses(outputs["logits"], features["label_ids"])
        weights = heads.example_weights(features)
        return {"choice_loss": heads.weighted_sum(losses, weights)}

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> dict[str, tuple[numerics.Tensor, numerics.Tensor]]:
        """Returns `accuracy`: the numbers of hits and of examples."""
        weights = heads.example_weights(features)
        hits = heads.weighted_hits(outputs["logits"], features["label_ids"], weights)
        return {"accuracy": (hits, ops.sum(weights))}
