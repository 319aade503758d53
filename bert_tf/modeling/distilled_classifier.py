"""A classifier that learns from the labels and from the logits of a teacher.

Source: Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network" (2015).

Shape letters: B batch, C classes.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

TEACHER_LOGITS = "teacher_logits"


@keras.saving.register_keras_serializable("bert_tf")
class DistilledClassifier(classifier.BertClassifier):
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
        teacher = (
            ops.cast(features[TEACHER_LOGITS], "float32") / self.temperature
        )  # [B, C]
        student = outputs["logits"] / self.temperature
        log_teacher = ops.log_softmax(teacher, axis=-1)
        difference = log_teacher - ops.log_softmax(student, axis=-1)
        divergence = ops.sum(ops.exp(log_teacher) * difference, axis=-1)  # [B]
        total = ops.sum(divergence * self.example_weights(features))
        return {
            "classification_loss": (1.0 - self.weight) * sums["classification_loss"],
            "distillation_loss": self.weight * self.temperature**2 * total,
        }
