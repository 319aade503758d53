"""True-casing of sentences in capitals, in a graph.

As `token_classification.true_casing` does it in Python, where the reasons stand.

Shape letters: B sentences, N words of all of them, C characters.
"""

import sys

import tensorflow as tf

from bert_tf.serving import text_words

DOTTED_CAPITAL_I = "\u0130"  # The only letter that becomes two in lower case.


class TrueCasing(tf.Module):
    """Gives sentences in capitals the usual case of their words.

    Args:
        cases: what `true_casing.learned_cases` returned.
    """

    def __init__(self, cases):
        super().__init__()
        # A table has to have something in it.
        self._cases = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(["", *cases], tf.string),
                tf.constant(["", *cases.values()], tf.string),
            ),
            default_value="",
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

    def __call__(self, words):
        """Returns the words as they are to be tokenized, string RaggedTensor [B, W].

        Args:
            words: string RaggedTensor [B, W].
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

    def _count(self, codes, wanted):
        """Returns how many characters of each word are among some: int32 [N]."""
        flags = text_words.is_among(codes.values, wanted)
        return tf.reduce_sum(codes.with_values(tf.cast(flags, tf.int32)), axis=1)

    def _in_usual_case(self, words):
        """Returns words [N] that are in capitals as they are written elsewhere."""
        words = tf.strings.regex_replace(words, DOTTED_CAPITAL_I, "I\u0307")
        first = tf.strings.substr(words, 0, 1, unit="UTF8_CHAR")
        lower = self._lowered(words)
        rest = tf.strings.regex_replace(lower, r"(?s)^.", "")
        known = self._cases.lookup(lower)
        return tf.where(known == "", tf.strings.join([first, rest]), known)

    def _lowered(self, words):
        # The final form of a sigma; what comes before it is a letter.
        words = tf.strings.regex_replace(words, r"(\pL)Σ$", "\\1ς")
        codes = tf.strings.unicode_decode(words, "UTF-8")
        sources = tf.constant(list(self._lower), tf.int32)
        targets = tf.constant(list(self._lower.values()), tf.int32)
        place = tf.minimum(tf.searchsorted(sources, codes.values), len(self._lower) - 1)
        is_mapped = tf.gather(sources, place) == codes.values
        lower = tf.where(is_mapped, tf.gather(targets, place), codes.values)
        return tf.strings.unicode_encode(codes.with_values(lower), "UTF-8")
