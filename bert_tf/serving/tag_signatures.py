"""The SavedModel of a tagger: texts to words and their tags.

Shape letters: B texts, N windows, S sequence, W words, C classes.
"""

from typing import Any

import tensorflow as tf

from bert_tf.serving import graph_true_casing
from bert_tf.serving import request_limits
from bert_tf.serving import signatures
from bert_tf.serving import tag_windows
from bert_tf.serving import tag_words

# Pads the positions of texts with fewer words.
NO_WORD = -1


class TagSignatures(signatures.TaskSignatures):
    """The functions of a trained tagger.

    Args:
        predictor: `token_classification.predictor.Predictor`.
        limits: limits of the requests.

    Attributes:
        functions: `serving_default` takes `text`, string [B], of any length. It returns
            `words` and `tags`, string [B, W], padded with "", and `starts` and `ends`,
            int64 [B, W], characters of the text, padded with `NO_WORD`. `ids` returns
            `logits`, float32 [B, S, C].
    """

    HAS_POSITIONS = True

    def __init__(self, predictor: Any, limits: request_limits.RequestLimits):
        super().__init__(
            predictor,
            predictor.tokenizer,
            limits,
            serving_default=(self._of_texts, signatures.texts("text")),
        )
        self._split = tag_words.WordSplitter(predictor.task.whole_words)
        cases = predictor.task.true_cases
        self._true_casing = (
            None if cases is None else graph_true_casing.TrueCasing(cases)
        )

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `logits`."""
        return {"logits": self.predictor.model(features)["logits"]}

    def _of_texts(self, text):
        found = self._split(text)
        tags = found.words.with_values(self._tags(found.words))
        return {
            "words": found.words.to_tensor(""),
            "tags": tags.to_tensor(""),
            "starts": found.starts.to_tensor(NO_WORD),
            "ends": found.ends.to_tensor(NO_WORD),
        }

    def _tags(self, words):
        """Returns the tags of all words, string [words of all texts]."""
        vocabulary, task = self.predictor.vocabulary, self.predictor.task
        if self._true_casing is not None:
            words = self._true_casing(words)
        pieces = self._tokenizer.tokenize(words.values)
        # A word without any pieces gets a tag too, that of [UNK].
        unknown = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(unknown)], vocabulary.unk_id), unknown
        )
        pieces = words.with_values(tf.concat([pieces, unknown], axis=1))
        windows = tag_windows.windows_of(pieces, task.windowing)
        features = tag_windows.features(
            windows, cls_id=vocabulary.cls_id, sep_id=vocabulary.sep_id
        )
        logits = self.in_parts(features)["logits"]
        indices = tf.stack([windows.row, windows.position + 1], axis=1)  # After [CLS].
        best = tf.argmax(tf.gather_nd(logits, indices), axis=-1)
        return tf.gather(tf.constant(task.labels), best)


def create(
    predictor: Any, limits: request_limits.RequestLimits = request_limits.DEFAULT
) -> TagSignatures:
    """Returns the signatures of a trained tagger."""
    return TagSignatures(predictor, limits)
