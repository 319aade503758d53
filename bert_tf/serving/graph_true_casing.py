"""True-casing of all-capital sentences, in a graph.

The TensorFlow version of `token_classification.words.true_cased`, which has the rules.
Both are needed: a SavedModel has no Python, and `predict` would trace a graph for a few
words. TensorFlow lacks the lowercase forms of 41 letters that Unicode 14 added.

Shape letters: B sentences, N words of all of them, W words of one.
"""

from collections.abc import Mapping

import tensorflow as tf


class TrueCasing(tf.Module):
    """Rewrites all-capital sentences in the usual case of their words.

    Args:
        cases: from `words.learned_cases`.
    """

    def __init__(self, cases: Mapping[str, str]):
        super().__init__()
        # A table must not be empty.
        self._cases = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(["", *cases], tf.string),
                tf.constant(["", *cases.values()], tf.string),
            ),
            default_value="",
        )

    def __call__(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns the words in the case for tokenizing, string [B, W].

        Args:
            words: string [B, W].
        """
        texts = words.values  # [N]
        lower, upper = _lower(texts), _upper(texts)
        is_cased = lower != upper
        letters = tf.strings.regex_replace(texts, r"\PL", "")
        is_capitals = is_cased & (tf.strings.length(letters, unit="UTF8_CHAR") > 1)
        counts = [
            tf.reduce_sum(words.with_values(tf.cast(flags, tf.int32)), axis=1)
            for flags in (is_capitals, is_cased & (texts != upper))
        ]
        is_all_capitals = (counts[0] > 1) & (counts[1] == 0)  # [B]
        usual = self._cases.lookup(lower)
        first = tf.strings.substr(lower, 0, 1, unit="UTF8_CHAR")
        rest = tf.strings.regex_replace(lower, r"(?s)^.", "")
        usual = tf.where(usual == "", tf.strings.join([_upper(first), rest]), usual)
        is_rewritten = tf.gather(is_all_capitals, words.value_rowids())
        return words.with_values(tf.where(is_rewritten, usual, texts))


def _lower(texts):
    return tf.strings.lower(texts, encoding="utf-8")


def _upper(texts):
    return tf.strings.upper(texts, encoding="utf-8")
