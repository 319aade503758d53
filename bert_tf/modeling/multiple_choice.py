"""BertMultipleChoice: the encoder with one score per ending.

Shape letters: B batch, C endings, S sequence, H hidden.
"""

import keras
from keras import ops

from bert_tf.modeling import heads
from bert_tf.modeling import input_features
from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks


class SequenceScorer(heads.TaskModel):
    """The base of models that give one score to each of an example's sequences."""

    sequence_features = input_features.SEQUENCE
    logits_outputs = ("logits",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def _create_weights(self):
        self.bert.build((None, None))
        # The layout of the release's class heads, with one class.
        self.output_weights, self.output_bias = heads.class_weights(
            self, 1, self.config.hidden_size
        )

    def scores(
        self, features: numerics.Features, keys: numerics.Tensor | None = None
    ) -> numerics.Tensor:
        """Returns float32 [B] for sequences [B, S], and [B, C] for [B, C, S].

        Args:
            features, keys: those of `task_outputs`.
        """
        shape = ops.shape(features["input_ids"])
        if len(shape) == 3 and keys is not None:
            keys = dropout_masks.keys_of_parts(keys, shape[1])  # [B * C]
        flat = {
            name: ops.reshape(features[name], (-1, shape[-1]))  # [rows, S]
            for name in self.sequence_features
            if name in features
        }
        positions = heads.no_positions(flat)
        encoded = self.bert(
            flat,
            training=keys is not None,
            dropout_keys=keys,
            output_positions=positions,
        )
        pooled = self.with_task_dropout(encoded["pooled_output"], keys)  # [rows, H]
        scores = heads.class_scores(pooled, self.output_weights, self.output_bias)
        return ops.reshape(scores, (-1, *shape[1:-1]))


@keras.saving.register_keras_serializable("bert_tf")
class BertMultipleChoice(SequenceScorer):
    """Chooses one of several endings.

    Every ending forms a sequence of its own, with the beginning of the story as its
    first segment. One vector scores all sequences, so a model takes any number of
    endings (section 4.4 of the paper).

    Args:
        config: BertConfig.
        **kwargs: `name`, `dtype` and so on; see `heads.TaskModel`.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, C, S]. For losses and
    metrics: `label_ids` int32 [B], the correct ending.
    """

    loss_names = ("choice_loss",)
    label_features = ("label_ids",)
    answer_outputs = ("probabilities",)
    num_exported_axes = 3

    def task_outputs(
        self, features: numerics.Features, keys: numerics.Tensor | None
    ) -> numerics.Outputs:
        """Returns `logits` and `probabilities`, float32 [B, C].

        Raises:
            ValueError: `input_ids` does not have three axes; see also `TaskModel`.
        """
        num_axes = len(features["input_ids"].shape)
        if num_axes != 3:
            raise ValueError(
                f"input_ids has {num_axes} axes; expected 3: [examples, endings, "
                "pieces]."
            )
        logits = self.scores(features, keys)  # [B, C]
        return {"logits": logits, "probabilities": numerics.softmax(logits)}
