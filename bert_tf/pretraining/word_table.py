"""Many sentences to ids at a time: each different word is tokenized once.

Ids are those of `FullTokenizer`, which is asked for every new word. On two cores this
is faster than TensorFlow's operations, whose import alone takes seconds.
"""

import array
import re
from collections.abc import Sequence

import numpy as np

from bert_tf.tokenization import basic
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabularies

# Words of ASCII text, and punctuation marks, which are words of their own.
_ASCII_WORDS = re.compile(r"[0-9A-Za-z]+|[!-/:-@\[-`{-~]")
# Bounds the memory of a corpus whose words never repeat.
_MOST_WORDS = 1 << 20


class WordTable:
    """Tokenizes sentences by looking words up.

    Args:
        vocabulary: the word pieces.
        do_lower_case: as for `FullTokenizer`.
    """

    def __init__(self, vocabulary: vocabularies.Vocabulary, do_lower_case: bool):
        self._tokenizer = full.FullTokenizer(vocabulary, do_lower_case)
        self._do_lower_case = do_lower_case
        self._numbers = _Numbers(self._add)
        self._clear()

    def tokenize(self, sentences: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of all sentences' word pieces, and each sentence's number.

        Args:
            sentences: N texts.

        Returns:
            int32 [P], and int64 [N] with the sum P.
        """
        if len(self._numbers) > _MOST_WORDS:
            self._clear()
        numbers, counts = [], []
        for sentence in sentences:
            before = len(numbers)
            numbers += map(self._numbers.__getitem__, self._words(sentence))
            counts.append(len(numbers) - before)
        return self._looked_up(np.array(numbers, np.int64), np.array(counts, np.int64))

    def _words(self, sentence):
        if sentence.isascii() and sentence.isprintable():
            return self._ascii_words(sentence)
        words = []
        for word in basic.split_words(sentence):
            words += self._ascii_words(word) if word.isascii() else [word]
        return words

    def _ascii_words(self, text):
        # In ASCII, what becomes of a letter does not depend on its neighbours.
        return _ASCII_WORDS.findall(text.lower() if self._do_lower_case else text)

    def _looked_up(self, numbers, counts):
        starts = np.array(self._starts, np.int64)
        lengths = np.diff(starts)[numbers]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        place = np.arange(total) - np.repeat(ends - lengths, lengths)
        ids = np.array(self._ids, np.int32)[np.repeat(starts[numbers], lengths) + place]
        ends = np.concatenate([[0], ends])[np.cumsum(counts)]
        return ids, np.diff(ends, prepend=0)

    def _clear(self):
        self._numbers.clear()
        self._ids = array.array("i")  # Of the words' pieces, one word after another.
        self._starts = array.array("q", [0])  # First of each word; end of the last.

    def _add(self, word):
        # Words of ASCII come here lower-cased and without marks.
        tokenizer = self._tokenizer
        tokenize = tokenizer.wordpiece_tokenizer.tokenize_word
        tokens = tokenize(word) if word.isascii() else tokenizer.tokenize(word)
        self._ids.extend(tokenizer.convert_tokens_to_ids(tokens))
        self._starts.append(len(self._ids))
        return len(self._starts) - 2


class _Numbers(dict):
    """Numbers of words; a word that is not there is added first."""

    def __init__(self, add):
        super().__init__()
        self._add_word = add

    def __missing__(self, word):
        number = self[word] = self._add_word(word)
        return number
