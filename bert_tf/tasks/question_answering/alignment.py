"""From word pieces back to the very characters of a context.

Word pieces are lower-cased and without accents, and a word of the context may be more
than the answer: "Smith's" where the answer is "smith". The release looks the pieces up
in the context's words, letter by letter, and where that fails it takes whole words.
"""

import dataclasses
import logging

from bert_tf.tasks.question_answering import windows as question_answering_windows
from bert_tf.tokenization import basic
from bert_tf.tokenization import wordpiece

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Span:
    """An answer, in the release's words and in the context's characters."""

    text: str  # With one space between words, as the release writes it.
    start: int  # Character of the context.
    end: int  # The one after the last: context.text[start:end].


class Aligner:
    """Finds the text of an answer from its pieces.

    Args:
        vocabulary: `Vocabulary` of the pieces.
        do_lower_case: as in the tokenizer that made them.
        verbose: whether to log each answer whose letters are not found again.

    Source: get_final_text of run_squad.py, 2018.
    """

    def __init__(self, vocabulary, *, do_lower_case: bool, verbose: bool = False):
        self._tokens = vocabulary.tokens
        self._words = _BasicTokens(basic.BasicTokenizer(do_lower_case))
        self._verbose = verbose

    def span(
        self,
        tokenized: question_answering_windows.TokenizedContext,
        first_piece: int,
        last_piece: int,
    ) -> Span:
        """Returns the answer that some pieces of a context are.

        Args:
            tokenized: the context.
            first_piece: number of its first piece of the answer.
            last_piece: number of the last one.
        """
        first_word = int(tokenized.word_of_piece[first_piece])
        last_word = int(tokenized.word_of_piece[last_piece])
        words = tokenized.context.words[first_word : last_word + 1]
        pieces = tokenized.piece_ids[first_piece : last_piece + 1]
        text = " ".join(words)
        start, end = self._aligned(joined([self._tokens[i] for i in pieces]), words)
        return Span(
            text=text[start:end],
            start=_in_context(tokenized.context, first_word, words, start),
            end=_in_context(tokenized.context, first_word, words, end - 1) + 1,
        )

    def _aligned(self, wanted, words):
        """Returns where in the joined words the wanted text starts and ends."""
        text = " ".join(words)
        whole = (0, len(text))
        shown = " ".join(token for word in words for token in self._words[word])
        start = shown.find(wanted)
        if start < 0 or not wanted:
            self._log("Unable to find text: '%s' in '%s'", wanted, text)
            return whole
        if len(text) - text.count(" ") != len(shown) - shown.count(" "):
            self._log(
                "Length not equal after stripping spaces: '%s' vs '%s'", text, shown
            )
            return whole
        end = start + len(wanted) - 1
        first = start - shown.count(" ", 0, start)
        last = end - shown.count(" ", 0, end)
        return _place_of_letter(text, first), _place_of_letter(text, last) + 1

    def _log(self, message, *arguments):
        if self._verbose:
            logger.info(message, *arguments)


def joined(tokens) -> str:
    """Returns the text that word pieces are, one space between words."""
    text = " ".join(tokens)
    text = text.replace(f" {wordpiece.CONTINUATION}", "")
    return " ".join(text.replace(wordpiece.CONTINUATION, "").split())


class _BasicTokens(dict):
    """Word -> its basic tokens; a word that is not there is tokenized first."""

    def __init__(self, tokenizer):
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, word):
        tokens = self[word] = self._tokenizer.tokenize(word)
        return tokens


def _place_of_letter(text, number):
    """Returns where in a text its letter of some number stands, spaces not counted."""
    place = number
    # Every space before the letter moves it on by one.
    while True:
        moved = number + text.count(" ", 0, place + 1)
        if moved == place:
            return place
        place = moved


def _in_context(context, first_word, words, place):
    """Returns the character of the context at a place of its joined words."""
    for number, word in enumerate(words):
        # The space after a word belongs to it.
        if place <= len(word):
            return context.starts[first_word + number] + place
        place -= len(word) + 1
    raise AssertionError(f"place beyond the words {words}")
