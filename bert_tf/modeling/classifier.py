"""Classifiers of texts: one class, any number of classes, or numbers.

All three have the release's weights, output_weights [C, H] and output_bias [C].

Shape letters: B batch, S sequence, H hidden, C classes.
"""

import types
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.modeling import numerics

TEACHER_LOGITS = "teacher_logits"


@keras.saving.register_keras_serializable("bert_tf")
class BertClassifier(heads.TaskModel):
    """Chooses one class for a text or a pair of texts.

    Args:
        config: BertConfig.
        num_labels: C.
        **kwargs: `name`, `dtype` and so on; see `heads.TaskModel`.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]. For losses and
    metrics: `label_ids` int32 [B] and optionally `example_weights` float32 [B].

    Raises:
        ValueError: `num_labels` is less than 1.

    Source: create_model of run_classifier.py, 2018.
    """

    config_arguments: tuple[str, ...] = ("num_labels",)
    loss_names: tuple[str, ...] = ("classification_loss",)
    label_features: tuple[str, ...] = ("label_ids",)
    logits_outputs = ("logits",)
    answer_outputs: tuple[str, ...] = ("probabilities",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        num_labels: int,
        **kwargs: Any,
    ):
        if num_labels < 1:
            raise ValueError(f"num_labels must be at least 1, got {num_labels}.")
        super().__init__(config, **kwargs)
        self.num_labels = num_labels

    def _create_weights(self):
        self.bert.build((None, None))
        self.output_weights, self.output_bias = heads.class_weights(
            self, self.num_labels, self.config.hidden_size
        )

    def task_outputs(
        self, features: numerics.Features, keys: numerics.Tensor | None
    ) -> numerics.Outputs:
        """Returns `logits`, float32 [B, C], and what `answers` makes of them."""
        encoded = self.bert(
            features,
            training=keys is not None,
            dropout_keys=keys,
            output_positions=heads.no_positions(features),
        )
        pooled = self.with_task_dropout(encoded["pooled_output"], keys)
        logits = heads.class_scores(pooled, self.output_weights, self.output_bias)
        return {"logits": logits, **self.answers(logits)}

    @staticmethod
    def answers(logits: numerics.Tensor) -> numerics.Outputs:
        """Returns `probabilities`, float32 [B, C], which sum to 1.

        Args:
            logits: float32 [B, C], from `call`.
        """
        return {"probabilities": numerics.softmax(logits)}

    def example_weights(self, features: numerics.Features) -> numerics.Tensor:
        """Returns the weight of each example, float32 [B]; 0 for padding."""
        weights = heads.example_weights(features)
        if "example_weights" in features:
            weights = weights * ops.cast(features["example_weights"], "float32")
        return weights


@keras.saving.register_keras_serializable("bert_tf")
class BertMultiLabelClassifier(BertClassifier):
    """Decides for each class independently whether it applies to a text.

    Args: those of `BertClassifier`.

    Features: those of `BertClassifier`, but instead of `label_ids` it has
    `label_indicators` int32 [B, C], 1 for every class of the example, and optionally
    `label_weights` float32 [B, C], the weight of each decision.
    """

    label_features = ("label_indicators",)
    label_axes = 2
    misread_names = types.MappingProxyType(
        {
            "accuracy": "binary_accuracy",
            "acc": "binary_accuracy",
            "crossentropy": "binary_crossentropy",
            "ce": "binary_crossentropy",
        }
    )

    @staticmethod
    def answers(logits: numerics.Tensor) -> numerics.Outputs:
        """Returns `probabilities`, float32 [B, C], one decision per class."""
        return {"probabilities": ops.sigmoid(logits)}

    @staticmethod
    def example_losses(
        features: numerics.Features, logits: numerics.Tensor
    ) -> numerics.Tensor:
        """Returns the mean cross-entropy of an example's decisions, float32 [B].

        Args:
            features: `label_indicators`, and optionally `label_weights`.
            logits: float32 [B, C].
        """
        truth = ops.cast(features["label_indicators"], "float32")
        # log(1 + exp(logit)) - truth * logit, in a form that cannot overflow.
        losses = ops.softplus(-ops.abs(logits)) + ops.relu(logits) - truth * logits
        if "label_weights" in features:
            losses = losses * ops.cast(features["label_weights"], "float32")
        return ops.mean(losses, axis=-1)

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns `accuracy`: the share of correct decisions."""
        truth = ops.cast(features["label_indicators"], "float32")
        predicted = ops.cast(outputs["logits"] > 0, "float32")
        correct = ops.mean(ops.cast(ops.equal(truth, predicted), "float32"), axis=-1)
        weights = self.example_weights(features)
        return {"accuracy": heads.sum_and_weight(correct, weights)}


@keras.saving.register_keras_serializable("bert_tf")
class BertRegressor(BertClassifier):
    """Predicts a number, or several, for a text or a pair of texts.

    Args: those of `BertClassifier`; `num_labels` is the number of targets.

    Features: those of `BertClassifier`, but instead of `label_ids` it has
    `label_values` float32 [B], or [B, C] if there are several targets.
    """

    loss_names = ("regression_loss",)
    label_features = ("label_values",)
    misread_names = types.MappingProxyType(
        dict.fromkeys(("accuracy", "acc"), "mean_absolute_error")
    )
    answer_outputs = ("values",)

    def __init__(
        self, config: config_module.BertConfig, *, num_labels: int = 1, **kwargs: Any
    ):
        super().__init__(config, num_labels=num_labels, **kwargs)
        self.label_axes = 1 if num_labels == 1 else 2

    @staticmethod
    def answers(logits: numerics.Tensor) -> numerics.Outputs:
        """Returns `values`, float32 [B] for logits [B, 1], or else [B, C]."""
        return {"values": logits[:, 0] if logits.shape[-1] == 1 else logits}

    @staticmethod
    def example_losses(
        features: numerics.Features, logits: numerics.Tensor
    ) -> numerics.Tensor:
        """Returns the squared errors, float32 [B]; the mean over several targets."""
        values = BertRegressor.answers(logits)["values"]
        errors = values - ops.cast(features["label_values"], "float32")
        return _mean_of_targets(ops.square(errors))

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns `mean_absolute_error`: the sum of the errors and its weight."""
        errors = outputs["values"] - ops.cast(features["label_values"], "float32")
        errors = _mean_of_targets(ops.abs(errors))
        weights = self.example_weights(features)
        return {"mean_absolute_error": heads.sum_and_weight(errors, weights)}


def _mean_of_targets(errors):
    return errors if len(errors.shape) == 1 else ops.mean(errors, axis=-1)


@keras.saving.register_keras_serializable("bert_tf")
class DistilledClassifier(BertClassifier):
    """A `BertClassifier` whose loss also compares student and teacher.

        loss = (1 - weight) * cross-entropy of the labels
               + weight * temperature² * KL(teacher || student), both at temperature

    The gradient of the second term shrinks with 1 / temperature², which the factor
    temperature² compensates. Both terms are reported with their factors.

    Args:
        config: size of the encoder.
        num_labels: C.
        temperature: divides all logits.
        weight: of the teacher, from 0 to 1.
        **kwargs: arguments of `BertClassifier`.

    Features: those of `BertClassifier`, and `teacher_logits` float32 [B, C], which only
    the loss reads.

    Source: Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network", 2015.
    """

    config_arguments = ("num_labels", "temperature", "weight")
    loss_names = ("classification_loss", "distillation_loss")

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        num_labels: int,
        temperature: float = 2.0,
        weight: float = 0.5,
        **kwargs: Any,
    ):
        super().__init__(config, num_labels=num_labels, **kwargs)
        self.temperature = temperature
        self.weight = weight

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns both terms, summed over the examples: float32 scalars."""
        sums = super().loss_sums(features, outputs)
        teacher = ops.cast(features[TEACHER_LOGITS], "float32")  # [B, C]
        student = outputs["logits"] / self.temperature
        log_teacher = ops.log_softmax(teacher / self.temperature, axis=-1)
        difference = log_teacher - ops.log_softmax(student, axis=-1)
        divergence = ops.sum(ops.exp(log_teacher) * difference, axis=-1)  # [B]
        total = ops.sum(divergence * self.example_weights(features))
        return {
            "classification_loss": (1.0 - self.weight) * sums["classification_loss"],
            "distillation_loss": self.weight * self.temperature**2 * total,
        }


# Kind of label -> the model that predicts it.
MODELS: dict[str, type[BertClassifier]] = {
    "single_label": BertClassifier,
    "multi_label": BertMultiLabelClassifier,
    "regression": BertRegressor,
}
