"""Distillation: a student learns from the logits of a teacher and from the labels.

A label names one class. The teacher's probabilities ("soft targets") also say how
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
import hashlib
import io
import logging
import os
import zipfile
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints.release import rotation
from bert_tf.data import batching
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import predictor as classification_predictor
from bert_tf.tasks.classification import task as task_module
from bert_tf.tasks.classification import windows
from bert_tf.training import evaluation as training_evaluation

logger = logging.getLogger(__name__)

CACHE_FILE = "teacher_logits.npz"


class Teacher:
    """A trained classifier whose logits a student learns from.

    Args:
        run_dir: `output_dir` of its training run.
        task: of the student.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder contains no trained classifier, or teacher and student
            differ in their classes or in whether they read pairs.
    """

    def __init__(self, run_dir: str, task: task_module.Task):
        self._run_dir = run_dir
        self._labels = task.labels
        if task.label_kind != label_kinds.SINGLE_LABEL:
            raise ValueError(
                f"--teacher={run_dir}: the data has {task.label_kind} labels, but "
                "distillation requires one class per text."
            )
        self._predictor = classification_predictor.load(run_dir)
        found = self._predictor.task
        if set(found.labels) != set(task.labels):
            raise ValueError(
                f"--teacher={run_dir} has the classes {', '.join(found.labels)}, but "
                f"the data has {', '.join(task.labels)}; expected the same classes."
            )
        if found.is_pair != task.is_pair:
            kinds = {True: "pairs of texts", False: "single texts"}
            raise ValueError(
                f"--teacher={run_dir} was trained on {kinds[found.is_pair]}, but the "
                f"data has {kinds[task.is_pair]}."
            )

    def logits(
        self,
        examples: Sequence[examples_module.InputExample],
        options: classification_options.RunClassifierOptions,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> np.ndarray:
        """Returns the teacher's logits, from the file in `output_dir` if it matches.

        Args:
            examples: N examples.
            options: of the student's run. Its `output_dir` keeps the logits.
            progress: reports the number of finished batches.

        Returns:
            float32 [N, C], in the order of the student's classes.
        """
        fingerprint = self._fingerprint(examples)
        path = os.path.join(options.output_dir, CACHE_FILE)
        logits = _read(path, fingerprint)
        if logits is None:
            logger.info("Computing the teacher's logits of %d examples.", len(examples))
            logits = self._computed(examples, options, progress)
            with files.complete_or_absent(path, "wb") as file:
                np.savez(file, logits=logits, fingerprint=fingerprint)
        return logits

    def _computed(self, examples, options, progress):
        task = self._predictor.task
        # In windows if the teacher was trained on them.
        rows = features_module.rows_of(
            examples, task, self._predictor.tokenizer, progress=progress
        )
        # The default strategy: one device, even if the student trains on several.
        predicted = training_evaluation.Evaluation(
            self._predictor.model,
            tf.distribute.get_strategy(),
            dataclasses.replace(options, eval_batch_size=options.train_batch_size),
            length_buckets=options.length_buckets,
            progress=progress,
        ).predict(batching.ArraySource(rows.columns), keys=("logits",))
        logits = windows.mean_over_windows(
            predicted["logits"], rows.example_numbers, len(examples)
        )
        order = [task.labels.index(label) for label in self._labels]
        return logits[:, order]

    def _fingerprint(self, examples):
        """Returns a hash of the teacher, the classes and the texts."""
        task = self._predictor.task
        reading = self._labels, task.max_seq_length, task.doc_stride
        digest = hashlib.sha256(repr(reading).encode())
        # The index file contains a checksum of every tensor.
        prefix = rotation.latest(self._run_dir)
        with files.open_file(f"{prefix}.index", "rb") as file:
            digest.update(file.read())
        for example in examples:
            digest.update(repr((example.text_a, example.text_b)).encode())
        return digest.hexdigest()


def _read(path, fingerprint):
    """Returns the logits in a file; None if missing or of a different fingerprint."""
    if not files.exists(path):
        return None
    with files.open_file(path, "rb") as file:
        content = io.BytesIO(file.read())
    try:
        with np.load(content) as kept:
            is_same = str(kept["fingerprint"]) == fingerprint
            return kept["logits"] if is_same else None
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
