"""Class weights and distillation in the loss of a classifier.

A class weight becomes a weight of the examples that have the class. The loss is already
a weighted sum divided by the sum of the weights (padding rows have weight 0), so the
result does not depend on how a batch is divided among devices. The release has no class
weights.

In distillation, a student learns from the logits of a teacher and from the labels. A
label names one class. The teacher's probabilities ("soft targets") also say how
plausible each of the other classes is for this text, which gives a small model more to
learn from per example than the label alone. A temperature above 1 flattens both
distributions, so that the small probabilities contribute as well.

The teacher is the folder of another run. It reads the training texts once, before the
first step, with its own vocabulary, casing and length. Its logits are then an ordinary
column of the features, so batching, replicas and resuming need no special case.

Source: Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network" (2015).
The release's small models are meant to be trained this way (Turc et al., 2019).
"""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import batching
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.training import evaluation as training_evaluation

_BALANCED = "balanced"


class Teacher:
    """A trained classifier whose logits a student learns from.

    Args:
        run_dir: `output_dir` of its training run.
        record: of the student.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder contains no trained classifier, or teacher and student
            differ in their classes or in whether they read pairs.
    """

    def __init__(self, run_dir: str, record: features_module.Record):
        self._labels = record.labels
        if record.label_kind != checkpoint_heads.SINGLE_LABEL:
            raise ValueError(
                f"--teacher={run_dir}: the data has {record.label_kind} labels, but "
                "distillation requires one class per text."
            )
        self._predictor = classification_predictions.Predictor.load(run_dir)
        trained = self._predictor.task
        if set(trained.labels) != set(record.labels):
            raise ValueError(
                f"--teacher={run_dir} has the classes {', '.join(trained.labels)}, but "
                f"the data has {', '.join(record.labels)}; expected the same classes."
            )
        if trained.is_pair != record.is_pair:
            kinds = {True: "pairs of texts", False: "single texts"}
            raise ValueError(
                f"--teacher={run_dir} was trained on {kinds[trained.is_pair]}, but the "
                f"data has {kinds[record.is_pair]}."
            )

    def logits(
        self,
        examples: Sequence[examples_module.InputExample],
        options: classification_options.RunClassifierOptions,
    ) -> np.ndarray:
        """Returns the teacher's logits.

        Args:
            examples: N examples.
            options: of the student's run.

        Returns:
            float32 [N, C], in the order of the student's classes.
        """
        task = self._predictor.task
        # In windows if the teacher was trained on them.
        rows = features_module.rows_of(examples, task, self._predictor.tokenizer)
        # The default strategy: one device, even if the student trains on several.
        predicted = training_evaluation.Evaluation(
            self._predictor.model,
            tf.distribute.get_strategy(),
            dataclasses.replace(options, eval_batch_size=options.train_batch_size),
            length_buckets=options.length_buckets,
        ).predict(batching.ArraySource(rows.columns), keys=("logits",))
        logits = features_module.mean_over_windows(
            predicted["logits"], rows.example_numbers, len(examples)
        )
        order = [task.labels.index(label) for label in self._labels]
        return logits[:, order]


def class_weights(
    items: Sequence[str],
    record: features_module.Record,
    examples: Sequence[examples_module.InputExample],
) -> Mapping[str, float] | None:
    """Returns the weight of each class in the loss, or None if no weights are given.

    `balanced` derives the weights from the training examples. Among N examples and C
    classes, a class with n examples has the weight N / (C n), so that all classes have
    the same total weight. If an example can have several classes, the weight is
    (N - n) / n, so that the examples with the class weigh as much as those without.

    Args:
        items: values of --class_weights: `NAME=WEIGHT`, or `balanced` alone. Classes
            that they do not name have weight 1.
        record: of the run.
        examples: the training examples.

    Raises:
        ValueError: an item has another form, the task does not have a class, or
            `balanced` is given and a class has no training examples.
    """
    if not items:
        return None
    if tuple(items) == (_BALANCED,):
        return _balanced(record, examples)
    weights = dict.fromkeys(record.labels, 1.0)
    for item in items:
        name, separator, text = item.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not (separator and 0 < weight < float("inf")):
            raise ValueError(
                f"--class_weights: expected {_BALANCED!r}, or NAME=WEIGHT with a "
                f"positive weight, got {item!r}."
            )
        if name not in weights:
            raise ValueError(
                f"--class_weights: unknown class {name!r}; the classes are "
                f"{', '.join(record.labels)}."
            )
        weights[name] = weight
    return weights


def _balanced(record, examples):
    is_multi = record.label_kind == checkpoint_heads.MULTI_LABEL
    columns = features_module.label_columns(examples, record)
    if is_multi:
        counts = np.sum(columns["label_indicators"], axis=0)
    else:
        counts = np.bincount(columns["label_ids"], minlength=len(record.labels))
    weights = {}
    for name, count in zip(record.labels, counts.tolist(), strict=True):
        num_without = len(examples) - count
        if count == 0 or (is_multi and num_without == 0):
            which = "no" if count == 0 else "every"
            raise ValueError(
                f"--class_weights={_BALANCED}: {which} training example has the class "
                f"{name!r}; pass the weights by name, as in {name}=1."
            )
        balanced = len(examples) / (len(record.labels) * count)
        weights[name] = num_without / count if is_multi else balanced
    return weights
