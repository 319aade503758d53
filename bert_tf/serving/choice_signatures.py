"""The SavedModel of a multiple choice model: a text and endings to the likeliest one.

Shape letters: B batch, C endings.
"""

from typing import Any

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.serving import signatures

# The score of a missing ending; its probability is 0.
ABSENT = -1e9


class ChoiceSignatures(signatures.TaskSignatures):
    """The functions of a trained multiple choice model.

    Args:
        predictor: `MultipleChoicePredictor`.

    Attributes:
        functions: `serving_default` takes `text`, string [B], and `endings`, string
            [B, C], padded with "". It returns `label`, string [B], the number of the
            most likely ending, and `probabilities`, float32 [B, C], 0 for "". `ids`
            takes one row per ending and returns `scores`, float32 [B].
    """

    def __init__(self, predictor: Any):
        specs = signatures.texts("text")
        specs["endings"] = tf.TensorSpec([None, None], tf.string, name="endings")
        super().__init__(
            predictor,
            predictor.tokenizer,
            serving_default=signatures.signature(self._of_texts, specs),
        )

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `scores`."""
        return {"scores": self.predictor.model.score_endings(features)}

    def _of_texts(self, text, endings):
        vocabulary = self.predictor.vocabulary
        starts = self._tokenizer.tokenize(text)
        num_endings = tf.shape(endings, tf.int64)[1]
        numbers = tf.repeat(tf.range(starts.nrows()), num_endings)
        features = graph_packing.pack_ragged(
            tf.gather(starts, numbers),
            self._tokenizer.tokenize(tf.reshape(endings, [-1])),
            max_seq_length=self.predictor.task.max_seq_length,
            cls_id=vocabulary.cls_id,
            sep_id=vocabulary.sep_id,
        )
        scores = signatures.in_parts(
            lambda part: self.outputs(part)["scores"], features, rank=1
        )
        scores = tf.reshape(scores, tf.shape(endings))
        scores = tf.where(endings == "", ABSENT, scores)
        return {
            "label": tf.strings.as_string(tf.argmax(scores, axis=-1)),
            "probabilities": tf.nn.softmax(scores),
        }


def create(predictor: Any) -> ChoiceSignatures:
    """Returns the signatures of a trained multiple choice model."""
    return ChoiceSignatures(predictor)
