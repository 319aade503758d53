"""Many sentences to ids at a time: each different word is tokenized once.

Ids are those of `FullTokenizer`, which is asked for every new word. On two cores this
is faster than TensorFlow's operations, whose import alone takes seconds.
"""

import array
import collections
import dataclasses
import itertools
import re
from collections.abc import Sequence

import numpy as np

from bert_tf.pretraining_data import segmentation
from bert_tf.pretraining_data import vectorized_masks
from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

# The end of a sentence, and what stands for a word that is not ASCII. Neither can be
# in a sentence of printable characters, and neither is white space.
_END = "\2"
_OTHER_WORD = "\1"
# Characters of ASCII that are words of their own: these two, and punctuation marks.
_IS_MARK = np.zeros(128, bool)
_IS_MARK[[*characters.ASCII_PUNCTUATION, ord(_END), ord(_OTHER_WORD)]] = True
# Text of these letters and marks alone has no white space but blanks, and nothing that
# is deleted or stands alone: Latin, Greek, Cyrillic, dashes, quotation marks, arrows
# and other signs.
_PLAIN_TEXT = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u0377\u0384-\u038a"
    "\u0391-\u03a1\u03a3-\u052f\u1e00-\u1eff\u2010-\u2027\u2030-\u205e\u20a0-\u20bf"
    "\u2190-\u23ff]*"
)
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
        vocabulary: vocabulary_module.Vocabulary,
        do_lower_case: bool,
        segmenter: segmentation.Segmenter | None = None,
    ):
        self._tokenizer = full.FullTokenizer(vocabulary, do_lower_case)
        self._do_lower_case = do_lower_case
        self._segmenter = segmenter
        self._is_inside_word = vectorized_masks.is_inside_word(vocabulary)
        self._clear()

    def tokenize(self, sentences: Sequence[str]) -> Pieces:
        """Returns the word pieces of N sentences."""
        if len(self._numbers) > _MOST_WORDS:
            self._clear()
        text, others = _as_ascii(sentences)
        # In ASCII, what becomes of a letter does not depend on its neighbours.
        words = _split_ascii(text.lower() if self._do_lower_case else text)
        numbers = self._numbers_of(words)
        if others:
            numbers[numbers == self._numbers[_OTHER_WORD]] = self._numbers_of(others)
        return self._looked_up(numbers, sentences)

    def _numbers_of(self, words):
        numbers = map(self._numbers.__getitem__, words)
        numbers = np.fromiter(numbers, np.int64, len(words))
        # New words are the last keys: a dict keeps the order in which they came.
        num_new = len(self._numbers) - len(self._chinese)
        self._add([*itertools.islice(reversed(self._numbers), num_new)][::-1])
        return numbers

    def _looked_up(self, numbers, sentences):
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
        ends = ends[numbers == self._numbers[_END]]
        return Pieces(ids=ids, counts=np.diff(ends, prepend=0), starts_word=starts_word)

    def _clear(self):
        # A word that is not there gets the next number. The first two have no pieces.
        self._numbers = collections.defaultdict(
            itertools.count(2).__next__, {_END: 0, _OTHER_WORD: 1}
        )
        self._ids = array.array("i")  # Of the words' pieces, one word after another.
        self._starts = array.array("q", [0, 0, 0])  # First of each; end of the last.
        self._chinese = array.array("b", [0, 0])  # 1 for a Chinese character.

    def _add(self, words):
        """Looks for the pieces of words that have numbers and no pieces yet."""
        tokenizer = self._tokenizer
        ids, starts, chinese = self._ids, self._starts, self._chinese
        of_ascii = tokenizer.wordpiece_tokenizer.tokenize_word
        for word in words:
            # Words of ASCII come here lower-cased and without marks.
            is_ascii = word.isascii()
            tokens = of_ascii(word) if is_ascii else tokenizer.tokenize_word(word)
            ids.extend([tokenizer.vocab[token] for token in tokens])
            starts.append(len(ids))
            chinese.append(
                not is_ascii and len(word) == 1 and characters.is_chinese(word)
            )


def _as_ascii(sentences):
    """Returns sentences as one text, and the words in it that are not ASCII."""
    lines, others = [], []
    for sentence in sentences:
        if not (sentence.isascii() and sentence.isprintable()):
            if _PLAIN_TEXT.fullmatch(sentence):
                words = sentence.split()
            else:
                words = basic.split_words(sentence)
            others += [word for word in words if not word.isascii()]
            sentence = " ".join(
                [word if word.isascii() else _OTHER_WORD for word in words]
            )
        lines.append(sentence)
    return _END.join([*lines, ""]), others


def _split_ascii(text):
    """Returns the words of ASCII text."""
    codes = np.frombuffer(text.encode("ascii"), np.uint8)
    marks = np.flatnonzero(_IS_MARK.take(codes))
    # Blanks around marks, and then no more is to be known than blanks: half the time
    # of a regular expression.
    spaced = np.insert(codes, np.concatenate([marks, marks + 1]), ord(" "))
    return spaced.tobytes().decode("ascii").split()
