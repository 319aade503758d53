"""The encoder with one head: for one class, for any number of classes, for a number.

All three have the release's weights, output_weights [C, H] and output_bias [C]; on a
BiLSTM output_weights is [C, 2 H].

Shape letters: B batch, S sequence, H hidden, C classes.
"""

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import heads
from bert_tf.modeling import numerics
from bert_tf.modeling import recurrent


@keras.saving.register_keras_serializable("bert_tf")
class BertClassifier(heads.TaskModel):
    """Chooses one class for a text or a pair of texts.

    Args:
        config: BertConfig.
        num_labels: int, C.
        bilstm_on_top: whether a BiLSTM of one layer, of width H in each direction,
            reads the encoder's vectors in the pooler's place (Table 5 of the paper).
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]; for losses and
    metrics only `label_ids` int32 [B] and, where not all examples count the same,
    `example_weights` float32 [B].

    Raises:
        ValueError: fewer than one label.

    Source: create_model of run_classifier.py, 2018.
    """

    loss_names = ("classification_loss",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def __init__(
        self,
        config,
        *,
        num_labels,
        bilstm_on_top=False,
        name="bert_classifier",
        dtype=None,
        **kwargs,
    ):
        if num_labels < 1:
            raise ValueError(f"num_labels must be at least 1, got {num_labels}.")
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        self.num_labels = num_labels
        self.bilstm_on_top = bilstm_on_top
        self.bert = bert.BertModel(config, name="bert", dtype=self.dtype_policy)
        if bilstm_on_top:
            self.bilstm = recurrent.BiLSTM(config.hidden_size, 1)

    def build(self, input_shape=None):
        """Creates all weights; needs no data."""
        self.bert.build()
        width = self.config.hidden_size
        if self.bilstm_on_top:
            self.bilstm.build(width)
            width = 2 * width
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(self.num_labels, width),
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
        vectors = encoded["pooled_output"]
        if self.bilstm_on_top:
            vectors = self.bilstm.vector_of_text(
                encoded["sequence_output"], features.get("input_mask")
            )
        pooled = numerics.dropout(
            vectors,
            self.task_dropout_rate,
            keys,
            heads.TASK_DROPOUT_SITE,
        )
        logits = heads.class_scores(pooled, self.output_weights, self.output_bias)
        return {"logits": logits, **self.answers(logits)}

    @staticmethod
    def answers(logits):
        """Returns what logits, float32 [B, C], say.

        They may be those of `call`, or means of them over the windows of a text.

        Returns:
            A dict: `probabilities`, float32 [B, C], which add up to 1.
        """
        return {"probabilities": numerics.softmax(logits)}

    def example_weights(self, features):
        """Returns float32 [B]: how much each example counts; 0 for padding."""
        weights = heads.example_weights(features)
        if "example_weights" in features:
            weights = weights * ops.cast(features["example_weights"], "float32")
        return weights

    @staticmethod
    def example_losses(features, logits):
        """Returns the cross-entropy of each example's class.

        Args:
            features: dict with `label_ids` int32 [B].
            logits: float32 [B, C].

        Returns:
            float32 [B].
        """
        return numerics.cross_entropy(logits, features["label_ids"])

    def loss_weights(self, features):
        """Returns the weight of all examples together; their number where all are 1.

        Args:
            features: as `loss_sums` takes them; labels are not needed.

        Returns:
            A dict: the loss's name, float32 scalar.
        """
        return {self.loss_names[0]: ops.sum(self.example_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed `example_losses`, each times its weight.

        Args:
            features: dict with the columns of the labels; `is_real_example` float32 [B]
                where there is padding.
            outputs: what `call` returned for them.

        Returns:
            A dict: the loss's name, float32 scalar.
        """
        losses = self.example_losses(features, outputs["logits"])
        weights = self.example_weights(features)
        return {self.loss_names[0]: ops.sum(losses * weights)}

    def metric_sums(self, features, outputs):
        """Returns what the accuracy is made of.

        Args:
            features, outputs: as `loss_sums` takes them.

        Returns:
            A dict: `accuracy`, a pair of float32 scalars: hits and examples.
        """
        weights = self.example_weights(features)
        hits = heads.weighted_hits(outputs["logits"], features["label_ids"], weights)
        return {"accuracy": (hits, ops.sum(weights))}

    def get_config(self):
        """Returns what the constructor takes."""
        own = {"num_labels": self.num_labels, "bilstm_on_top": self.bilstm_on_top}
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable("bert_tf")
class BertMultiLabelClassifier(BertClassifier):
    """Says of each class whether a text has it, whatever the others are.

    Args: those of `BertClassifier`.

    Features: those of `BertClassifier`, but `label_indicators` int32 [B, C], 1 for the
    classes that an example has, for `label_ids`; `label_weights` float32 [B, C], where
    not all of these decisions count the same.
    """

    def __init__(
        self, config, *, num_labels, name="bert_multi_label_classifier", **kwargs
    ):
        super().__init__(config, num_labels=num_labels, name=name, **kwargs)

    @staticmethod
    def answers(logits):
        """Returns `probabilities`, float32 [B, C]: of each class by itself."""
        return {"probabilities": ops.sigmoid(logits)}

    @staticmethod
    def example_losses(features, logits):
        """Returns the cross-entropy of all decisions on an example, their mean.

        Args:
            features: dict with `label_indicators`, and `label_weights` if need be.
            logits: float32 [B, C].

        Returns:
            float32 [B].
        """
        truth = ops.cast(features["label_indicators"], "float32")
        # log(1 + exp(logit)) - truth * logit, where nothing overflows.
        losses = ops.softplus(-ops.abs(logits)) + ops.relu(logits) - truth * logits
        if "label_weights" in features:
            losses = losses * ops.cast(features["label_weights"], "float32")
        return ops.mean(losses, axis=-1)

    def metric_sums(self, features, outputs):
        """Returns `accuracy`: the share of the decisions that are right."""
        truth = ops.cast(features["label_indicators"], "float32")
        said = ops.cast(outputs["logits"] > 0, "float32")
        right = ops.mean(ops.cast(ops.equal(truth, said), "float32"), axis=-1)
        weights = self.example_weights(features)
        return {"accuracy": (ops.sum(right * weights), ops.sum(weights))}


@keras.saving.register_keras_serializable("bert_tf")
class BertRegressor(BertClassifier):
    """Finds a number for a text or a pair of texts.

    Args:
        config: BertConfig.
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: those of `BertClassifier`, but `label_values` float32 [B] for `label_ids`.
    """

    loss_names = ("regression_loss",)

    def __init__(self, config, *, name="bert_regressor", dtype=None, **kwargs):
        super().__init__(config, num_labels=1, name=name, dtype=dtype, **kwargs)

    @staticmethod
    def answers(logits):
        """Returns `values`, float32 [B], for logits [B, 1]."""
        return {"values": logits[:, 0]}

    @staticmethod
    def example_losses(features, logits):
        """Returns the square of each error, float32 [B], for logits [B, 1]."""
        return ops.square(logits[:, 0] - ops.cast(features["label_values"], "float32"))

    def metric_sums(self, features, outputs):
        """Returns `mean_absolute_error`, a pair: the errors' sum and its weight."""
        errors = outputs["values"] - ops.cast(features["label_values"], "float32")
        weights = self.example_weights(features)
        return {
            "mean_absolute_error": (
                ops.sum(ops.abs(errors) * weights),
                ops.sum(weights),
            )
        }

    def get_config(self):
        """Returns what the constructor takes."""
        values = super().get_config()
        del values["num_labels"]
        return values


# What a label is, as `label_kinds` calls it -> the model that finds it.
MODELS = {
    "single_label": BertClassifier,
    "multi_label": BertMultiLabelClassifier,
    "regression": BertRegressor,
}


def create(config, kind, num_labels, **kwargs):
    """Returns the model for a kind of label.

    Args:
        config: BertConfig.
        kind: a key of `MODELS`.
        num_labels: int, C; not read for a number.
        **kwargs: bilstm_on_top; name and dtype, as for every Keras model.
    """
    if kind != "regression":
        kwargs["num_labels"] = num_labels
    return MODELS[kind](config, **kwargs)
