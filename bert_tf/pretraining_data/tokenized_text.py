"""The text of a shard as word-piece ids in flat arrays.

Many sentences are tokenized at once, and each distinct word only once. `FullTokenizer`
tokenizes every new word, so the ids are the same as its own. `InGraphTokenizer` is not
used: importing TensorFlow alone takes longer than tokenizing 14 MB this way.

Shape letters: P pieces, N sentences, D documents.
"""

import array
import collections
import dataclasses
import itertools
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from bert_tf import machine
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import rows as rows_module
from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

_CHARACTERS_PER_CALL = 1 << 20  # Tokenized together.
# Markers for the end of a sentence and for a word that is not ASCII. Neither occurs in
# a sentence of printable characters, and neither is white space.
_END = "\2"
_OTHER_WORD = "\1"
# ASCII characters that are separate words: the two markers and all punctuation.
_IS_MARK = np.zeros(128, bool)
_IS_MARK[[*characters.ASCII_PUNCTUATION, ord(_END), ord(_OTHER_WORD)]] = True
# Text of only these characters has no white space except blanks, and no character that
# the tokenizer deletes or turns into a separate word: Latin, Greek, Cyrillic, dashes,
# quotation marks, arrows and other signs.
_PLAIN_TEXT = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u0377\u0384-\u038a"
    "\u0391-\u03a1\u03a3-\u052f\u1e00-\u1eff\u2010-\u2027\u2030-\u205e\u20a0-\u20bf"
    "\u2190-\u23ff]*"
)
_CHINESE_RUN = re.compile(f"[{basic.CHINESE}]+")
# Bounds the memory if the words of a corpus never repeat.
_MAX_WORDS = 1 << 20


def tokenize_documents(
    documents: Iterable[list[str]],
    table: "WordTable",
    on_progress: Callable[[int], None],
) -> pairs_module.Text:
    """Tokenizes documents; drops sentences without pieces and documents without any.

    Args:
        documents: lists of sentences.
        table: the tokenizer.
        on_progress: called with the number of characters finished so far.
    """
    batches, document_of, num_done = [table.tokenize([])], [], 0
    for sentences, numbers in _batches(documents):
        batches.append(table.tokenize(sentences))
        document_of += numbers
        num_done += sum(map(len, sentences))
        on_progress(num_done)
    lengths = np.concatenate([batch.counts for batch in batches])
    has_pieces = lengths > 0
    lengths = lengths[has_pieces]
    document = np.array(document_of, np.int64)[has_pieces]
    changes = np.flatnonzero(np.diff(document, prepend=-1))
    starts_word = None
    if batches[0].starts_word is not None:
        starts_word = np.concatenate([batch.starts_word for batch in batches])
    return pairs_module.Text(
        ids=np.concatenate([batch.ids for batch in batches]),
        sentence_starts=np.concatenate([[0], np.cumsum(lengths)]),
        document_starts=np.append(changes, len(lengths)),
        starts_word=starts_word,
    )


def _batches(documents) -> Iterator[tuple[list[str], list[int]]]:
    """Yields batches of sentences with the indices of their documents."""
    sentences: list[str] = []
    numbers: list[int] = []
    size = 0
    for number, document in enumerate(documents):
        for sentence in document:
            sentences.append(sentence)
            numbers.append(number)
            size += len(sentence)
            if size >= _CHARACTERS_PER_CALL:
                yield sentences, numbers
                sentences, numbers, size = [], [], 0
    if sentences:
        yield sentences, numbers


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pieces:
    """The word pieces of several sentences."""

    ids: np.ndarray  # int32 [P], of all sentences.
    counts: np.ndarray  # int64 [N], number of pieces of each sentence.
    starts_word: np.ndarray | None  # bool [P]; None without a segmenter.


class WordTable:
    """Tokenizes sentences by looking up their words.

    Args:
        vocabulary: the word pieces.
        do_lower_case: as for `FullTokenizer`.
        segment: function from Chinese text to its words, such as `load_jieba` returns.
            BERT's tokenizer makes each Chinese character a word, so `##` does not show
            which of them belong together. None: each is a word.
    """

    def __init__(
        self,
        vocabulary: vocabulary_module.Vocabulary,
        do_lower_case: bool,
        segment: Callable[[str], Iterable[str]] | None = None,
    ):
        self._tokenizer = full.FullTokenizer(vocabulary, do_lower_case)
        self._do_lower_case = do_lower_case
        self._segment = segment
        self._is_inside_word = rows_module.is_inside_word(vocabulary)
        self._clear()

    def tokenize(self, sentences: Sequence[str]) -> Pieces:
        """Returns the word pieces of N sentences."""
        if len(self._numbers) > _MAX_WORDS:
            self._clear()
        text, others = _as_ascii(sentences)
        # Lowercasing an ASCII letter does not depend on its neighbors.
        words = _split_ascii(text.lower() if self._do_lower_case else text)
        numbers = self._numbers_of(words)
        if others:
            numbers[numbers == self._numbers[_OTHER_WORD]] = self._numbers_of(others)
        return self._looked_up(numbers, sentences)

    def _numbers_of(self, words):
        looked_up = map(self._numbers.__getitem__, words)
        numbers = np.fromiter(looked_up, np.int64, len(words))
        # The new words are the last keys, because a dict keeps insertion order.
        num_new = len(self._numbers) - len(self._chinese)
        self._add([*itertools.islice(reversed(self._numbers), num_new)][::-1])
        return numbers

    def _looked_up(self, numbers, sentences):
        starts = np.array(self._starts, np.int64)
        lengths = np.diff(starts)[numbers]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        number = np.arange(total) - np.repeat(ends - lengths, lengths)
        ids = np.array(self._ids, np.int32)[
            np.repeat(starts[numbers], lengths) + number
        ]
        starts_word = None
        if self._segment is not None:
            starts_word = ~self._is_inside_word[ids]
            chinese = np.array(self._chinese, bool)[numbers]
            # Each Chinese character is a word of one piece, so they come in order.
            starts_word[(ends - lengths)[chinese]] = _word_starts(
                sentences, self._segment
            )
        ends = ends[numbers == self._numbers[_END]]
        return Pieces(ids=ids, counts=np.diff(ends, prepend=0), starts_word=starts_word)

    def _clear(self):
        # Looking up a new word gives it the next number. The markers have no pieces.
        self._numbers = collections.defaultdict(
            itertools.count(2).__next__, {_END: 0, _OTHER_WORD: 1}
        )
        self._ids = array.array("i")  # The pieces of all words, one after another.
        self._starts = array.array("q", [0, 0, 0])  # First piece of each, then the end.
        self._chinese = array.array("b", [0, 0])  # 1 for a Chinese character.

    def _add(self, words):
        """Tokenizes words that have a number but no pieces yet."""
        tokenizer = self._tokenizer
        ids, starts, chinese = self._ids, self._starts, self._chinese
        of_ascii = tokenizer.wordpiece_tokenizer.tokenize_word
        for word in words:
            # ASCII words arrive lowercased and without punctuation.
            is_ascii = word.isascii()
            tokens = of_ascii(word) if is_ascii else tokenizer.tokenize_word(word)
            ids.extend([tokenizer.vocab[token] for token in tokens])
            starts.append(len(ids))
            chinese.append(
                not is_ascii and len(word) == 1 and characters.is_chinese(word)
            )


def _as_ascii(sentences):
    """Returns the sentences as one ASCII text, and their words that are not ASCII."""
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
    # Put blanks around marks, then split at blanks: half the time of a regular
    # expression.
    spaced = np.insert(codes, np.concatenate([marks, marks + 1]), ord(" "))
    return spaced.tobytes().decode("ascii").split()


def _word_starts(sentences, segment):
    """Returns bool: whether each Chinese character of sentences begins a word."""
    runs = (run for text in sentences for run in _CHINESE_RUN.findall(text))
    words = (word for run in runs for word in segment(run))
    flags = b"".join(b"\1" + bytes(len(word) - 1) for word in words)
    return np.frombuffer(flags, bool)


def load_jieba() -> Callable[[str], Iterable[str]]:
    """Returns the function of jieba that cuts Chinese text into words.

    Raises:
        ImportError: jieba is not installed.
    """
    jieba = machine.package(
        "jieba", extra="chinese", needed_for="--whole_word_segmenter=jieba"
    )
    # Otherwise it logs to standard error when it loads its dictionary.
    jieba.setLogLevel("WARNING")
    return jieba.cut
