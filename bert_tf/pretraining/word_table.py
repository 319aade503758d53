"""Many sentences to ids at a time: each different word is tokenized once.

Ids are those of `FullTokenizer`, which is asked for every new word. On two cores this
is faster than TensorFlow's operations, whose import alone takes seconds.
"""

import array
import dataclasses
import re
from collections.abc import Sequence

import numpy as np

from bert_tf.pretraining import mask_sampling
from bert_tf.pretraining import segmentation
from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabularies

# Words of ASCII text, and punctuation marks, which are words of their own.
_ASCII_WORDS = re.compile(r"[0-9A-Za-z]+|[!-/:-@\[-`{-~]")
# Bounds the memory of a corpus whose words never repeat.
_MOST_WORDS = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pieces:
    """Word pieces of some sentences."""

    ids: np.ndarray  # int32 [P], of all sentences.
    counts: np.ndarray  # int64 [N], pieces of each sentence; their sum is P.
    starts_word: np.ndarray | None  # bool [P]; None where no segmenter says so.


class WordTable:
    """Tokenizes sentences by looking words up.

    Args:
        vocabulary: the word pieces.
        do_lower_case: as for `FullTokenizer`.
        segmenter: says which Chinese characters form words; None: nobody does.
    """

    def __init__(
        self,
        vocabulary: vocabularies.Vocabulary,
        do_lower_case: bool,
        segmenter: segmentation.Segmenter | None = None,
    ):
        self._tokenizer = full.FullTokenizer(vocabulary, do_lower_case)
        self._do_lower_case = do_lower_case
        self._segmenter = segmenter
        self._is_inside_word = mask_sampling.is_inside_word(vocabulary)
        self._numbers = _Numbers(self._add)
        self._clear()

    def tokenize(self, sentences: Sequence[str]) -> Pieces:
        """Returns the word pieces of N sentences."""
        if len(self._numbers) > _MOST_WORDS:
            self._clear()
        numbers, counts = [], []
        for sentence in sentences:
            before = len(numbers)
            numbers += map(self._numbers.__getitem__, self._words(sentence))
            counts.append(len(numbers) - before)
        return self._looked_up(
            np.array(numbers, np.int64), np.array(counts, np.int64), sentences
        )

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

    def _looked_up(self, numbers, counts, sentences):
        starts = np.array(self._starts, np.int64)
        lengths = np.diff(starts)[numbers]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        place = np.arange(total) - np.repeat(ends - lengths, lengths)
        ids = np.array(self._ids, np.int32)[np.repeat(starts[numbers], lengths) + place]
        starts_word = None
        if self._segmenter is not None:
            starts_word = ~self._is_inside_word[ids]
            chinese = np.array(self._chinese, bool)[numbers]
            # Each Chinese character is a word of one piece, so they come in order.
            starts_word[(ends - lengths)[chinese]] = self._segmenter.starts(sentences)
        ends = np.concatenate([[0], ends])[np.cumsum(counts)]
        return Pieces(ids=ids, counts=np.diff(ends, prepend=0), starts_word=starts_word)

    def _clear(self):
        self._numbers.clear()
        self._ids = array.array("i")  # Of the words' pieces, one word after another.
        self._starts = array.array("q", [0])  # First of each word; end of the last.
        self._chinese = array.array("b")  # 1 for a word that is a Chinese character.

    def _add(self, word):
        # Words of ASCII come here lower-cased and without marks.
        tokenizer = self._tokenizer
        tokenize = tokenizer.wordpiece_tokenizer.tokenize_word
        tokens = tokenize(word) if word.isascii() else tokenizer.tokenize(word)
        self._ids.extend(tokenizer.convert_tokens_to_ids(tokens))
        self._starts.append(len(self._ids))
        self._chinese.append(len(word) == 1 and characters.is_chinese(word))
        return len(self._starts) - 2


class _Numbers(dict):
    """Numbers of words; a word that is not there is added first."""

    def __init__(self, add):
        super().__init__()
        self._add_word = add

    def __missing__(self, word):
        number = self[word] = self._add_word(word)
        return number
