"""True-casing of all-capital sentences, in a graph.

The TensorFlow version of `token_classification.true_casing`, which explains the steps.

Shape letters: B sentences, N words of all of them, C characters.
"""

import sys
from collections.abc import Mapping

import tensorflow as tf

from bert_tf.serving import word_splitting
from bert_tf.tokenization import in_graph_words

DOTTED_CAPITAL_I = "\u0130"  # The only letter whose lower case has two characters.


class TrueCasing(tf.Module):
    """Rewrites all-capital sentences in the usual case of their words.

    Args:
        cases: from `true_casing.learned_cases`.
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
        self._words = in_graph_words.InGraphWords(
            do_lower_case=True, strip_accents=False
        )
        characters = list(map(chr, range(sys.maxunicode + 1)))
        self._cased = [ord(c) for c in characters if c.lower() != c.upper()]
        self._letters = [ord(c) for c in characters if c.isalpha()]
        self._not_upper = [ord(c) for c in characters if c != c.upper()]
        self._lower = {
            ord(c): ord(c.lower())
            for c in characters
            if c.lower() != c and len(c.lower()) == 1
        }
        # Capitals that differ from the capital of their lowercase form: the Kelvin
        # sign, for example, and ẞ, whose lowercase form has the capital SS.
        self._other_capitals = {
            c: c.lower()[0].upper()
            for c in characters
            if c == c.upper() != c.lower()[0].upper()
        }

    def __call__(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns the words in the case for tokenizing, string [B, W].

        Args:
            words: string [B, W].
        """
        is_capitals = tf.gather(self._is_all_capitals(words), words.value_rowids())
        texts = tf.where(is_capitals, self._in_usual_case(words.values), words.values)
        return words.with_values(texts)

    def _is_all_capitals(self, words):
        codes = tf.strings.unicode_decode(words.values, "UTF-8")
        is_cased = self._count(codes, self._cased) > 0  # [N]
        is_upper = self._count(codes, self._not_upper) == 0
        is_capitals = is_cased & (self._count(codes, self._letters) > 1)
        sums = [
            tf.reduce_sum(words.with_values(tf.cast(flags, tf.int32)), axis=1)
            for flags in (is_capitals, is_cased & ~is_upper)
        ]
        return (sums[0] > 1) & (sums[1] == 0)  # [B]

    def _count(self, codes, members):
        """Returns how many characters of each word are members of a set, int32 [N]."""
        flags = word_splitting.is_among(codes.values, members)
        return tf.reduce_sum(codes.with_values(tf.cast(flags, tf.int32)), axis=1)

    def _in_usual_case(self, words):
        """Returns all-capital words [N] as they are usually written."""
        words = tf.strings.regex_replace(words, DOTTED_CAPITAL_I, "I\u0307")
        first = tf.strings.substr(words, 0, 1, unit="UTF8_CHAR")
        for capital, usual in self._other_capitals.items():
            first = tf.where(first == capital, usual, first)
        lower = self._lowered(words)
        rest = tf.strings.regex_replace(lower, r"(?s)^.", "")
        known = self._cases.lookup(lower)
        return tf.where(known == "", tf.strings.join([first, rest]), known)

    def _lowered(self, words):
        # The space separates each word from the one before it.
        codes = tf.strings.unicode_decode(tf.strings.join([" ", words]), "UTF-8")
        codes = codes.with_values(self._words.with_final_sigmas(codes.values))[:, 1:]
        sources = tf.constant(list(self._lower), tf.int32)
        targets = tf.constant(list(self._lower.values()), tf.int32)
        place = tf.minimum(tf.searchsorted(sources, codes.values), len(self._lower) - 1)
        is_mapped = tf.gather(sources, place) == codes.values
        lower = tf.where(is_mapped, tf.gather(targets, place), codes.values)
        return tf.strings.unicode_encode(codes.with_values(lower), "UTF-8")
