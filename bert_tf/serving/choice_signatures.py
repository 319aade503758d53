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
        predictor: `multiple_choice.task.Predictor`.

    Attributes:
        functions: `serving_default` takes `text`, string [B], and `endings`, string
            [B, C], padded with "". It returns `label`, string [B], the number of the
            most likely ending, and `probabilities`, float32 [B, C], 0 for "". `ids`
            takes one row per ending and returns `scores`, float32 [B].
    """

    def __init__(self, predictor: Any):
        specs = signatures.texts("text")
        specs["endings"] = tf.TensorSpec([None, None], tf.string, name="endings")
        super().__init__(predictor, serving_default=(self._of_texts, specs))

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `scores`."""
        return {"scores": self.predictor.model.score_endings(features)}

    def _of_texts(self, text, endings):
        starts = self._tokenizer.tokenize(text)
        num_endings = tf.shape(endings, tf.int64)[1]
        numbers = tf.repeat(tf.range(starts.nrows()), num_endings)
        features = graph_packing.pack_ragged(
            tf.gather(starts, numbers),
            self._tokenizer.tokenize(tf.reshape(endings, [-1])),
            max_seq_length=self.predictor.task.max_seq_length,
            **self._frame,
        )
        scores = tf.reshape(self.in_parts(features)["scores"], tf.shape(endings))
        scores = tf.where(is_absent(endings), ABSENT, scores)
        # A request without texts may have no column of endings, either.
        missing = tf.cast((tf.size(text) == 0) & (num_endings == 0), tf.int32)
        best = tf.argmax(tf.pad(scores, [[0, 0], [0, missing]]), axis=-1)
        return {
            "label": tf.strings.as_string(best),
            "probabilities": tf.nn.softmax(scores),
        }


def is_absent(endings: tf.Tensor) -> tf.Tensor:
    """Returns where there is no ending; bool [B, C].

    A client pads endings with "". With `pad_variable_length_inputs`, TensorFlow Serving
    repeats the first ending of the request after the last one instead.

    Args:
        endings: string [B, C].
    """
    is_first = tf.range(tf.shape(endings)[1]) == 0
    is_padding = (endings == "") | (endings == endings[:, :1])
    is_tail = tf.math.cumprod(tf.cast(is_padding, tf.int32), axis=1, reverse=True) > 0
    return (endings == "") | (is_tail & ~is_first)
