"""Maps word pieces back to characters of the context.

The model predicts word pieces, but an answer must be quoted from the original text.
Joining the pieces does not give that text: an uncased tokenizer lowercases them and
strips accents. Quoting the whole words that contain the pieces gives too much: the
pieces "smith" belong to the word "Smith's". So the release searches for the pieces in
the tokenized words and counts letters, without spaces, to find the same letters in
the original words. If the letters cannot be matched, the answer is the whole words.
"""

import dataclasses
import logging
from collections.abc import Iterable
from typing import Any

from bert_tf.tasks.question_answering import windows as question_answering_windows
from bert_tf.tokenization import basic
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Span:
    """The text of an answer and its position in the context."""

    text: str  # With one space between words, as the release writes it.
    start: int  # Index of the first character; context.text[start:end].
    end: int


class Aligner:
    """Finds the original text of an answer, given its word pieces.

    Args:
        vocabulary: vocabulary of the pieces.
        verbose: whether to log answers that cannot be located in the original text.
        **tokenizer_arguments: as for the tokenizer that produced the pieces, such as
            `do_lower_case`.

    Source: get_final_text of run_squad.py, 2018.
    """

    def __init__(
        self,
        vocabulary: vocabulary_module.Vocabulary,
        *,
        verbose: bool = False,
        **tokenizer_arguments: Any,
    ):
        self._tokens = vocabulary.tokens
        self._words = _BasicTokens(basic.BasicTokenizer(**tokenizer_arguments))
        self._verbose = verbose

    def span(
        self,
        tokenized: question_answering_windows.TokenizedContext,
        first_piece: int,
        last_piece: int,
    ) -> Span:
        """Returns the text and position of an answer.

        Args:
            tokenized: the context.
            first_piece: index of the answer's first piece in the context.
            last_piece: index of its last piece.
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

    def _aligned(self, answer, words):
        """Returns where the answer starts and ends in the words, joined by spaces."""
        text = " ".join(words)
        whole = (0, len(text))
        tokens = " ".join(token for word in words for token in self._words[word])
        start = tokens.find(answer)
        if start < 0 or not answer:
            self._log("Unable to find text: '%s' in '%s'", answer, text)
            return whole
        # Counting letters works only if tokenization kept all of them. It removes
        # control characters and, when it lowercases, combining accents.
        if len(text) - text.count(" ") != len(tokens) - tokens.count(" "):
            self._log(
                "Length not equal after stripping spaces: '%s' vs '%s'", text, tokens
            )
            return whole
        end = start + len(answer) - 1
        first = start - tokens.count(" ", 0, start)
        last = end - tokens.count(" ", 0, end)
        return _index_of_letter(text, first), _index_of_letter(text, last) + 1

    def _log(self, message, *arguments):
        if self._verbose:
            logger.info(message, *arguments)


def joined(tokens: Iterable[str]) -> str:
    """Returns the text of word pieces, with one space between words."""
    text = " ".join(tokens)
    text = text.replace(f" {wordpiece.CONTINUATION}", "")
    return " ".join(text.replace(wordpiece.CONTINUATION, "").split())


class _BasicTokens(dict):
    """Maps a word to its basic tokens; tokenizes a new word on first use."""

    def __init__(self, tokenizer):
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, word):
        tokens = self[word] = self._tokenizer.tokenize(word)
        return tokens


def _index_of_letter(text, number):
    """Returns the index of a text's n-th letter, counted from 0 without spaces."""
    index = number
    # Each space before the letter adds one to its index.
    while True:
        moved = number + text.count(" ", 0, index + 1)
        if moved == index:
            return index
        index = moved


def _in_context(context, first_word, words, index):
    """Returns the index in the context of a character of the joined words."""
    for number, word in enumerate(words):
        # The space after a word counts as part of it.
        if index <= len(word):
            return context.starts[first_word + number] + index
        index -= len(word) + 1
    raise AssertionError(f"Character index is past the end of the words {words}.")
