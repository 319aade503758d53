"""A small student learns from a teacher's logits as well as from the labels.

The teacher is the folder of another run. It reads the training texts once, before the
first step, with its own vocabulary, casing and length; its logits are then a column of
the features as any other, so that batches, replicas and resuming know nothing of it.

Source: Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network" (2015);
the small models of the release are meant for it (Turc et al., 2019).
"""

import dataclasses
import hashlib
import io
import logging
import os
import zipfile
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints.release import rotation
from bert_tf.data import batching
from bert_tf.modeling import classifier
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import predictor as classification_predictor
from bert_tf.training import evaluation as training_evaluation

logger = logging.getLogger(__name__)

COLUMN = "teacher_logits"
CACHE_FILE = "teacher_logits.npz"


@keras.saving.register_keras_serializable("bert_tf")
class DistilledClassifier(classifier.BertClassifier):
    """A `BertClassifier` whose loss has a part for the teacher's opinion.

        loss = (1 - weight) * cross-entropy of the labels
               + weight * temperature² * KL(teacher || student), both at temperature

    Both parts are reported as they are added up.

    Args:
        config: BertConfig.
        num_labels: int, C.
        temperature: float, what all logits are divided by.
        weight: float from 0 to 1, the teacher's share.
        **kwargs: those of `BertClassifier`.

    Features: those of `BertClassifier`, and `teacher_logits` float32 [B, C], for
    losses only.
    """

    loss_names = ("classification_loss", "distillation_loss")

    def __init__(self, config, *, num_labels, temperature, weight, **kwargs):
        super().__init__(config, num_labels=num_labels, **kwargs)
        self.temperature = temperature
        self.weight = weight

    def loss_weights(self, features):
        """Returns the number of examples, for both parts."""
        count = ops.sum(self.example_weights(features))
        return dict.fromkeys(self.loss_names, count)

    def loss_sums(self, features, outputs):
        """Returns both parts, summed over the examples: float32 scalars."""
        sums = super().loss_sums(features, outputs)
        teacher = ops.cast(features[COLUMN], "float32") / self.temperature  # [B, C]
        student = outputs["logits"] / self.temperature
        log_teacher = ops.log_softmax(teacher, axis=-1)
        difference = log_teacher - ops.log_softmax(student, axis=-1)
        divergence = ops.sum(ops.exp(log_teacher) * difference, axis=-1)  # [B]
        total = ops.sum(divergence * self.example_weights(features))
        return {
            "classification_loss": (1.0 - self.weight) * sums["classification_loss"],
            "distillation_loss": self.weight * self.temperature**2 * total,
        }

    def get_config(self):
        """Returns what the constructor takes."""
        own = {"temperature": self.temperature, "weight": self.weight}
        return {**super().get_config(), **own}


class Teacher:
    """A trained classifier whose logits a student learns from.

    Args:
        run_dir: `output_dir` of its training run.
        task: `task.Task` of the student.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no trained classifier, or its classes or its kind
            of text are not the student's.
    """

    def __init__(self, run_dir: str, task):
        self._run_dir = run_dir
        self._labels = task.labels
        if task.label_kind != label_kinds.SINGLE_LABEL:
            raise ValueError(
                f"--teacher={run_dir}: the data have labels of the kind "
                f"{task.label_kind}; a teacher needs classes of which one is right."
            )
        self._predictor = classification_predictor.load(run_dir)
        found = self._predictor.task
        if set(found.labels) != set(task.labels):
            raise ValueError(
                f"--teacher={run_dir} knows the classes {', '.join(found.labels)}, but "
                f"the data have {', '.join(task.labels)}; expected the same ones."
            )
        if found.is_pair != task.is_pair:
            kinds = {True: "pairs of texts", False: "single texts"}
            raise ValueError(
                f"--teacher={run_dir} was trained on {kinds[found.is_pair]}, but the "
                f"data are {kinds[task.is_pair]}."
            )

    def logits(
        self,
        examples: Sequence[examples_module.InputExample],
        options,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> np.ndarray:
        """Returns the logits of some examples; those of an earlier call are read back.

        Args:
            examples: N examples.
            options: `RunClassifierOptions`; the logits are kept in its output_dir.
            progress: told how many batches are done.

        Returns:
            float32 [N, C], columns in the order of the student's classes.
        """
        fingerprint = self._fingerprint(examples)
        path = os.path.join(options.output_dir, CACHE_FILE)
        logits = _read(path, fingerprint)
        if logits is None:
            logger.info("The teacher reads %d examples.", len(examples))
            logits = self._computed(examples, options, progress)
            with files.complete_or_absent(path, "wb") as file:
                np.savez(file, logits=logits, fingerprint=fingerprint)
        return logits

    def _computed(self, examples, options, progress):
        task = self._predictor.task
        columns = features_module.convert_examples_to_features(
            examples,
            task.labels,
            task.max_seq_length,
            self._predictor.tokenizer,
            progress=progress,
        )
        # On one device, whatever the student trains on.
        predicted = training_evaluation.Evaluation(
            self._predictor.model,
            tf.distribute.get_strategy(),
            dataclasses.replace(options, eval_batch_size=options.train_batch_size),
            length_buckets=options.length_buckets,
            progress=progress,
        ).predict(batching.ArraySource(columns), keys=("logits",))
        order = [task.labels.index(label) for label in self._labels]
        return predicted["logits"][:, order]

    def _fingerprint(self, examples):
        """Returns what changes with the teacher's weights, the classes or the texts."""
        digest = hashlib.sha256(repr(self._labels).encode())
        # The index holds a checksum of every tensor.
        prefix = rotation.latest(self._run_dir)
        with files.open_file(f"{prefix}.index", "rb") as file:
            digest.update(file.read())
        for example in examples:
            digest.update(repr((example.text_a, example.text_b)).encode())
        return digest.hexdigest()


def _read(path, fingerprint):
    """Returns the logits in a file, or None where it is not there or of others."""
    if not files.exists(path):
        return None
    with files.open_file(path, "rb") as file:
        content = io.BytesIO(file.read())
    try:
        with np.load(content) as kept:
            is_same = str(kept["fingerprint"]) == fingerprint
            return kept["logits"] if is_same else None
    except (ValueError, KeyError, zipfile.BadZipFile):
        return None
