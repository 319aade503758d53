"""BertMultipleChoice: the encoder with one score an ending.

Shape letters: B batch, C endings, S sequence, H hidden.
"""

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import heads
from bert_tf.modeling import numerics

_ENCODER_FEATURES = ("input_ids", "input_mask", "segment_ids")


@keras.saving.register_keras_serializable("bert_tf")
class BertMultipleChoice(heads.TaskModel):
    """Chooses one of several endings.

    Every ending is a sequence of its own, with the start as its first segment. One
    vector scores them all, so the number of endings is the features', not the model's.

    Args:
        config: BertConfig.
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, C, S]; `label_ids`
    int32 [B], the right ending, for losses and metrics only.

    Source: section 4.4 of "BERT: Pre-training of Deep Bidirectional Transformers".
    """

    loss_names = ("choice_loss",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def __init__(self, config, *, name="bert_multiple_choice", dtype=None, **kwargs):
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        self.bert = bert.BertModel(config, name="bert", dtype=self.dtype_policy)

    def build(self, input_shape=None):
        """Creates all weights; needs no data."""
        self.bert.build()
        # In the layout of the release's class heads, with one class.
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(1, self.config.hidden_size),
            initializer=numerics.initializer(self.config),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(1,), initializer="zeros"
        )

    def call(self, features, training=False, dropout_keys=None):
        """Computes the endings' scores.

        Args:
            features: dict of int32 [B, C, S]: `input_ids`, and `input_mask` and
                `segment_ids` where they are not all 1 and all 0.
            training: bool, whether to drop out.
            dropout_keys: uint32 [B] of `numerics.dropout_keys`, or None, in `fit` and
                without training.

        Returns:
            A dict: `logits` and `probabilities`, float32 [B, C].

        Raises:
            ValueError: `input_ids` has not three axes, training needs keys and there
                are none, or S is longer than the model's position table.
        """
        shape = ops.shape(features["input_ids"])
        if len(shape) != 3:
            raise ValueError(
                f"input_ids has {len(shape)} axes; expected 3: [examples, endings, "
                "pieces]."
            )
        _, num_endings, length = shape
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        if keys is not None:
            keys = numerics.dropout_keys_of_parts(keys, num_endings)  # [B * C]
        flat = {
            name: ops.reshape(features[name], (-1, length))  # [B * C, S]
            for name in _ENCODER_FEATURES
            if name in features
        }
        scores = self.score_endings(flat, training=training, dropout_keys=keys)
        logits = ops.reshape(scores, (-1, num_endings))  # [B, C]
        return {"logits": logits, "probabilities": numerics.softmax(logits)}

    def score_endings(self, features, training=False, dropout_keys=None):
        """Returns float32 [rows], the score of every sequence by itself.

        Args:
            features: as `call` takes them, but [rows, S].
            training: bool, whether to drop out.
            dropout_keys: uint32 [rows], or None without dropout.
        """
        encoded = self.bert(features, training=training, dropout_keys=dropout_keys)
        pooled = numerics.dropout(
            encoded["pooled_output"],
            self.task_dropout_rate,
            dropout_keys,
            heads.TASK_DROPOUT_SITE,
        )  # [rows, H]
        return heads.class_scores(pooled, self.output_weights, self.output_bias)[:, 0]

    def loss_weights(self, features):
        """Returns the number of examples.

        Args:
            features: as `loss_sums` takes them; labels are not needed.

        Returns:
            A dict: `choice_loss`, float32 scalar.
        """
        return {"choice_loss": ops.sum(heads.example_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed cross-entropy of the endings.

        Args:
            features: dict with `label_ids` int32 [B]; `is_real_example` float32 [B]
                where there is padding.
            outputs: what `call` returned for them.

        Returns:
            A dict: `choice_loss`, float32 scalar.
        """
        losses = numerics.cross_entropy(outputs["logits"], features["label_ids"])
        return {"choice_loss": ops.sum(losses * heads.example_weights(features))}

    def metric_sums(self, features, outputs):
        """Returns what the accuracy is made of.

        Args:
            features, outputs: as `loss_sums` takes them.

        Returns:
            A dict: `accuracy`, a pair of float32 scalars: hits and examples.
        """
        weights = heads.example_weights(features)
        hits = heads.weighted_hits(outputs["logits"], features["label_ids"], weights)
        return {"accuracy": (hits, ops.sum(weights))}
