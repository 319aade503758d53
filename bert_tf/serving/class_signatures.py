"""What a SavedModel of a classifier answers: text to classes, and ids to classes.

Shape letters: B batch, C classes.
"""

import tensorflow as tf

from bert_tf.serving import rows
from bert_tf.serving import signatures


class ClassSignatures(signatures.TaskSignatures):
    """A trained classifier.

    Args:
        trained: `classification.trained.TrainedClassifier`.

    Attributes:
        functions: `serving_default`: `text`, and `text_b` for a model of pairs, string
            [B], to `label`, string [B], and `probabilities`, float32 [B, C]. `ids`: to
            `logits` and `probabilities`, float32 [B, C]. `labels`: `text`, string [B],
            which is not looked at, to `labels`, string [B, C]: the names of the
            columns of `probabilities`.
    """

    def __init__(self, trained):
        names = ("text", "text_b") if trained.task.is_pair else ("text",)
        texts = signatures.texts(*names)
        super().__init__(
            trained,
            trained.tokenizer,
            serving_default=signatures.signature(self._of_texts, texts),
            labels=signatures.signature(self._labels, signatures.texts("text")),
        )

    def outputs(self, features):
        """Returns `logits` and `probabilities`."""
        outputs = self.trained.model(features)
        return {name: outputs[name] for name in ("logits", "probabilities")}

    def _of_texts(self, text, text_b=None):
        vocabulary = self.trained.vocabulary
        features = rows.pack_ragged(
            self._tokenizer.tokenize(text),
            None if text_b is None else self._tokenizer.tokenize(text_b),
            max_seq_length=self.trained.task.max_seq_length,
            cls_id=vocabulary.cls_id,
            sep_id=vocabulary.sep_id,
        )
        probabilities = self.outputs(features)["probabilities"]
        best = tf.argmax(probabilities, axis=-1)
        return {
            "label": tf.gather(tf.constant(self.trained.task.labels), best),
            "probabilities": probabilities,
        }

    def _labels(self, text):
        labels = tf.constant(self.trained.task.labels)
        return {"labels": tf.tile(labels[tf.newaxis], [tf.shape(text)[0], 1])}
