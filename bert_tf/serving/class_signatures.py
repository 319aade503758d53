"""The SavedModels of classifiers, regression and multiple choice.

Shape letters: B batch, C classes or endings.
"""

from typing import Any

import tensorflow as tf

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import graph_packing
from bert_tf.modeling import numerics
from bert_tf.serving import signatures

# The score of a missing ending; its probability is 0.
ABSENT = -1e9


class ClassSignatures(signatures.TaskSignatures):
    """The functions of a trained classifier.

    Args:
        predictor: of a trained classifier.

    Attributes:
        functions: `serving_default` takes `text`, and `text_b` for a model of pairs,
            string [B]. It returns `label`, string [B], and `probabilities`, float32
            [B, C]. A multi-label model returns `labels`, string [B, C], padded with "",
            instead of `label`; a regression model returns only `value`, float32 [B], or
            [B, C] with several targets.
            `ids` returns `logits`, float32 [B, C], and what follows from them. Models
            with classes also have `labels`, which ignores its input `text`, string [B],
            and returns `labels`, string [B, C]: the columns of `probabilities`.
    """

    def __init__(self, predictor: Any):
        functions: dict[str, Any] = {}
        if predictor.task.is_pair:
            pairs = signatures.texts("text", "text_b")
            functions["serving_default"] = (self._of_texts, pairs)
        if predictor.task.label_kind != checkpoint_heads.REGRESSION:
            functions["labels"] = (self._labels, signatures.texts("text"))
        super().__init__(predictor, **functions)

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `logits`, and `probabilities` or `values`."""
        return self.predictor.model(features)

    def _of_texts(self, text, text_b=None):
        task = self.predictor.task
        packed = graph_packing.pack_ragged(
            self._tokenizer.tokenize(text),
            None if text_b is None else self._tokenizer.tokenize(text_b),
            max_seq_length=task.max_seq_length,
            longer_keeps_more=task.longer_keeps_more,
            **self._frame,
        )
        answers = self.predictor.model.answers(self.in_parts(packed)["logits"])
        if task.label_kind == checkpoint_heads.REGRESSION:
            values = answers["values"]
            return {"value": numerics.score_of(values, task.output_activation)}
        probabilities = answers["probabilities"]
        if task.label_kind == checkpoint_heads.MULTI_LABEL:
            chosen = self._chosen(probabilities)
            return {"labels": chosen, "probabilities": probabilities}
        best = tf.argmax(probabilities, axis=-1)
        return {
            "label": tf.gather(tf.constant(task.labels), best),
            "probabilities": probabilities,
        }

    def _chosen(self, probabilities):
        """Returns the names of the predicted classes, padded with "", string [B, C]."""
        task = self.predictor.task
        counts = probabilities >= self.predictor.THRESHOLD
        names = tf.tile(tf.constant([task.labels]), [tf.shape(counts)[0], 1])
        chosen = tf.ragged.boolean_mask(names, counts)
        return chosen.to_tensor("", shape=[None, len(task.labels)])

    def _labels(self, text):
        labels = tf.constant(self.predictor.task.labels)
        return {"labels": tf.tile(labels[tf.newaxis], [tf.shape(text)[0], 1])}


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
        return {"scores": self.predictor.model.scores(features)}

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
