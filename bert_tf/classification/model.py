"""BertClassifier: the encoder with one class head.

Shape letters: B batch, S sequence, H hidden, C classes.
"""

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import heads
from bert_tf.modeling import numerics


@keras.saving.register_keras_serializable("bert_tf")
class BertClassifier(heads.TaskModel):
    """Chooses one class for a text or a pair of texts.

    Args:
        config: BertConfig.
        num_labels: int, C.
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]; `label_ids` int32
    [B], for losses and metrics only.

    Raises:
        ValueError: fewer than one label.

    Source: create_model of run_classifier.py, 2018.
    """

    loss_names = ("classification_loss",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def __init__(
        self, config, *, num_labels, name="bert_classifier", dtype=None, **kwargs
    ):
        if num_labels < 1:
            raise ValueError(f"num_labels must be at least 1, got {num_labels}.")
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        self.num_labels = num_labels
        self.bert = bert.BertModel(config, name="bert", dtype=self.dtype_policy)

    def build(self, input_shape=None):
        """Creates all weights; needs no data."""
        self.bert.build()
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(self.num_labels, self.config.hidden_size),
            initializer=numerics.initializer(self.config),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.num_labels,), initializer="zeros"
        )

    def call(self, features, training=False, dropout_keys=None):
        """Computes the classes' scores.

        Args:
            features: dict of int32 [B, S]: `input_ids`, and `input_mask` and
                `segment_ids` where they are not all 1 and all 0.
            training: bool, whether to drop out.
            dropout_keys: uint32 [B] of `numerics.dropout_keys`, or None, in `fit` and
                without training.

        Returns:
            A dict: `logits` and `probabilities`, float32 [B, C].

        Raises:
            ValueError: training needs keys and there are none, or S is longer than
                the model's position table.
        """
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        encoded = self.bert(features, training=training, dropout_keys=keys)
        pooled = numerics.dropout(
            encoded["pooled_output"],
            self.task_dropout_rate,
            keys,
            heads.TASK_DROPOUT_SITE,
        )
        logits = heads.class_scores(pooled, self.output_weights, self.output_bias)
        return {"logits": logits, "probabilities": numerics.softmax(logits)}

    def loss_weights(self, features):
        """Returns the number of examples.

        Args:
            features: as `loss_sums` takes them; labels are not needed.

        Returns:
            A dict: `classification_loss`, float32 scalar.
        """
        return {"classification_loss": ops.sum(heads.example_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed cross-entropy of the classes.

        Args:
            features: dict with `label_ids` int32 [B]; `is_real_example` float32 [B]
                where there is padding.
            outputs: what `call` returned for them.

        Returns:
            A dict: `classification_loss`, float32 scalar.
        """
        losses = numerics.cross_entropy(outputs["logits"], features["label_ids"])
        return {
            "classification_loss": ops.sum(losses * heads.example_weights(features))
        }

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

    def get_config(self):
        """Returns what the constructor takes."""
        return {**super().get_config(), "num_labels": self.num_labels}
