"""BertTokenClassifier: the encoder with a tag head on every piece.

Shape letters: B batch, S sequence, H hidden, C classes.
"""

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import heads
from bert_tf.modeling import numerics


@keras.saving.register_keras_serializable("bert_tf")
class BertTokenClassifier(heads.TaskModel):
    """Chooses one tag for every piece of a text.

    Args:
        config: BertConfig.
        num_labels: int, C, the number of tags.
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]; `tag_ids` int32
    [B, S], for losses and metrics only: -1 for a piece that has no tag of its own,
    such as [CLS], padding and all pieces of a word but its first.

    Raises:
        ValueError: fewer than one tag.

    Source: section 5.3 of the paper (named entity recognition); the head's weights are
    named as those of run_classifier.py, 2018.
    """

    loss_names = ("tag_loss",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def __init__(
        self, config, *, num_labels, name="bert_token_classifier", dtype=None, **kwargs
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
        """Computes the tags' scores at every piece.

        Args:
            features: dict of int32 [B, S]: `input_ids`, and `input_mask` and
                `segment_ids` where they are not all 1 and all 0.
            training: bool, whether to drop out.
            dropout_keys: uint32 [B] of `numerics.dropout_keys`, or None, in `fit` and
                without training.

        Returns:
            A dict: `logits` and `probabilities`, float32 [B, S, C].

        Raises:
            ValueError: training needs keys and there are none, or S is longer than
                the model's position table.
        """
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        encoded = self.bert(features, training=training, dropout_keys=keys)
        vectors = numerics.dropout(
            encoded["sequence_output"],
            self.task_dropout_rate,
            keys,
            heads.TASK_DROPOUT_SITE,
        )
        length, hidden_size = ops.shape(vectors)[1:]
        vectors = ops.reshape(vectors, (-1, hidden_size))  # [B * S, H]
        logits = heads.class_scores(vectors, self.output_weights, self.output_bias)
        logits = ops.reshape(logits, (-1, length, self.num_labels))  # [B, S, C]
        return {"logits": logits, "probabilities": numerics.softmax(logits)}

    def loss_weights(self, features):
        """Returns the number of pieces that have a tag.

        Args:
            features: as `loss_sums` takes them.

        Returns:
            A dict: `tag_loss`, float32 scalar.
        """
        return {"tag_loss": ops.sum(_tag_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed cross-entropy of the tags.

        Args:
            features: dict with `tag_ids` int32 [B, S]; `is_real_example` float32 [B]
                where there is padding.
            outputs: what `call` returned for them.

        Returns:
            A dict: `tag_loss`, float32 scalar.
        """
        tag_ids = ops.reshape(_known_tag_ids(features), (-1,))  # [B * S]
        logits = ops.reshape(outputs["logits"], (-1, self.num_labels))
        weights = ops.reshape(_tag_weights(features), (-1,))
        losses = numerics.cross_entropy(logits, tag_ids)
        return {"tag_loss": ops.sum(losses * weights)}

    def metric_sums(self, features, outputs):
        """Returns what the share of right tags is made of.

        Args:
            features, outputs: as `loss_sums` takes them.

        Returns:
            A dict: `accuracy`, a pair of float32 scalars: hits and tagged pieces.
        """
        weights = _tag_weights(features)
        tag_ids = _known_tag_ids(features)
        hits = heads.weighted_hits(outputs["logits"], tag_ids, weights)
        return {"accuracy": (hits, ops.sum(weights))}

    def get_config(self):
        """Returns what the constructor takes."""
        return {**super().get_config(), "num_labels": self.num_labels}


def _known_tag_ids(features):
    """Returns int32 [B, S], 0 where there is no tag: an index that exists."""
    return ops.maximum(ops.cast(features["tag_ids"], "int32"), 0)


def _tag_weights(features):
    """Returns float32 [B, S]: 1 for a piece with a tag in an example that counts."""
    has_tag = ops.cast(ops.greater_equal(features["tag_ids"], 0), "float32")
    return has_tag * heads.example_weights(features)[:, None]
