"""Maps word pieces back to characters of the context.

The model predicts word pieces, but an answer must be quoted from the original text.
Joining the pieces does not give that text: an uncased tokenizer lowercases them and
strips accents. Quoting the whole words that contain the pieces gives too much: the
pieces "smith" belong to the word "Smith's". So the release searches for the pieces in
the tokenized words and counts letters, without spaces, to find the same letters in
the original words. If the letters cannot be matched, the answer is the whole words,
and in scripts without spaces, such as Chinese, Japanese and Thai, the characters that
the pieces cover. A word there is a whole sentence or paragraph, so the search would
find another occurrence, or nothing. In other scripts, answers are the release's.

For nearly all words, tokenization keeps the number of letters. Answers that start with
such a word are found without a search, in places that are computed once per context.
"""

import bisect
import functools
import itertools
import logging
import re
import unicodedata
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

logger = logging.getLogger(__name__)

# The text of an answer, with one space between words as the release writes it, and its
# position: context.text[start:end]. A plain tuple is created fastest, and each question
# needs twenty or more.
Span = tuple[str, int, int]
_WITHOUT_SPACES = re.compile(f"[{characters.SCRIPTS_WITHOUT_SPACES}]")


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
        self._words = functools.cache(
            basic.BasicTokenizer(**tokenizer_arguments).tokenize
        )
        # A long word is asked for once per candidate for an answer.
        self._piece_spans = functools.lru_cache(maxsize=8)(
            lambda word, pieces: piece_spans(word, pieces, self._words)
        )
        self._verbose = verbose
        letters = [len(one.replace(wordpiece.CONTINUATION, "")) for one in self._tokens]
        self._num_letters = np.array(letters, np.int64)
        self._unk_id = vocabulary.unk_id
        self._last: tuple[Any, Any] = (None, None)  # A context and its function.

    def spans_of(self, tokenized: Any) -> Callable[[int, int], Span]:
        """Returns a function from the pieces of an answer to its text and position.

        Its arguments are the indices of the answer's first and last piece in the
        context. The function is called at least twenty times per question, so it only
        looks up the places of the pieces where they are known.

        Args:
            tokenized: the context.
        """
        if self._last[0] is not tokenized:
            self._last = (tokenized, self._span_function(tokenized))
        return self._last[1]

    def _span_function(self, tokenized):
        """Returns the function of a context; its lists have one entry per piece.

        A word is exact if its pieces have as many letters as the word itself, so that
        each piece has its place in the word.
        """
        words, word = tokenized.context.words, tokenized.word_of_piece
        ids = np.array(tokenized.piece_ids, np.int64)
        counts = self._num_letters[ids]
        before = np.cumsum(counts) - counts  # Letters before each piece.
        first_piece = np.array(tokenized.first_pieces, np.int64)[word]  # Of the word.
        lengths = np.array([len(one) for one in words], np.int64)
        is_exact = np.bincount(word, counts, minlength=len(words)) == lengths
        is_exact[word[ids == self._unk_id]] = False
        num_inexact = np.cumsum(~is_exact)
        # If an answer has no inexact words, its place is known. -1 marks a piece that
        # does not start a word, where the release may find the same letters earlier,
        # as in "1895-1895".
        inexact_earlier = (num_inexact - ~is_exact)[word]
        is_first = first_piece == np.arange(len(ids))
        inexact_before = np.where(is_first, inexact_earlier, -1).tolist()
        inexact_through = num_inexact[word].tolist()
        text = " ".join(words)
        word_starts = np.cumsum(lengths + 1) - lengths - 1  # In the text.
        in_text = word_starts[word] + before - before[first_piece]
        starts, ends = in_text.tolist(), (in_text + counts).tolist()
        moved = np.array(tokenized.context.starts, np.int64) - word_starts
        to_context = moved[word].tolist()

        def span(first, last):
            if inexact_before[first] != inexact_through[last]:
                return self._searched(tokenized, first, last)
            start, end = starts[first], ends[last]
            return text[start:end], start + to_context[first], end + to_context[last]

        return span

    def _searched(self, tokenized, first_piece, last_piece):
        """Finds an answer by searching, which also works for inexact words."""
        first_word = int(tokenized.word_of_piece[first_piece])
        last_word = int(tokenized.word_of_piece[last_piece])
        words = tokenized.context.words[first_word : last_word + 1]
        pieces = tokenized.piece_ids[first_piece : last_piece + 1]
        text = " ".join(words)
        answer = joined(self._tokens[i] for i in pieces)
        start, stop = (tokenized.first_pieces[i] for i in (first_word, last_word + 1))
        ids = tokenized.piece_ids[start:stop]
        # Without [UNK], the word pieces have all letters of the words' tokens.
        if self._unk_id in ids:
            tokens = " ".join(token for word in words for token in self._words(word))
        else:
            tokens = joined(self._tokens[i] for i in ids)
        place = self._aligned(answer, tokens, words)
        if is_without_spaces(text):
            covered = self._covered(tokenized, first_piece, last_piece)
            if place is None or (
                covered and text[slice(*covered)] == text[slice(*place)]
            ):
                place = covered
        start, end = place or (0, len(text))
        return (
            text[start:end],
            _in_context(tokenized.context, first_word, text, start),
            _in_context(tokenized.context, first_word, text, end - 1) + 1,
        )

    def _aligned(self, answer, tokens, words):
        """Returns where the answer starts and ends in the words, joined by spaces.

        Returns None if its letters cannot be matched in `tokens`, the joined tokens.
        """
        text, start = " ".join(words), tokens.find(answer)
        if start < 0 or not answer:
            self._log("Unable to find text: '%s' in '%s'", answer, text)
            return None
        # Counting letters works only if tokenization kept all of them. It removes
        # control characters and, when it lowercases, combining accents.
        letters = list(itertools.accumulate(map(len, words)))  # Through each word.
        if letters[-1] != len(tokens) - tokens.count(" "):
            self._log(
                "Length not equal after stripping spaces: '%s' vs '%s'", text, tokens
            )
            return None
        first, last = (
            place - tokens.count(" ", 0, place)
            for place in (start, start + len(answer) - 1)
        )
        # There is a space before each word but the first.
        return (
            first + bisect.bisect_right(letters, first),
            last + bisect.bisect_right(letters, last) + 1,
        )

    def _covered(self, tokenized, first_piece, last_piece):
        """Returns the characters that the pieces cover, in the words joined by spaces.

        Returns None if they are unknown.
        """
        words, place = tokenized.context.words, []
        for piece, side in ((first_piece, 0), (last_piece, 1)):
            word = int(tokenized.word_of_piece[piece])
            first = tokenized.first_pieces[word]
            ids = tokenized.piece_ids[first : tokenized.first_pieces[word + 1]]
            pieces = tuple(self._tokens[i] for i in ids)
            spans = self._piece_spans(words[word], pieces)
            if spans is None:
                return None
            place.append((word, spans[piece - first][side]))
        (first_word, start), (last_word, end) = place
        before = sum(len(word) + 1 for word in words[first_word:last_word])
        return start, before + end

    def _log(self, message, *arguments):
        if self._verbose:
            logger.info(message, *arguments)


def joined(tokens: Iterable[str]) -> str:
    """Returns the text of word pieces, with one space between words."""
    text = " ".join(tokens)
    text = text.replace(f" {wordpiece.CONTINUATION}", "")
    return " ".join(text.replace(wordpiece.CONTINUATION, "").split())


def _in_context(context, first_word, text, index):
    """Returns the index in the context of a character of the joined words."""
    word = first_word + text.count(" ", 0, index)
    return context.starts[word] + index - (text.rfind(" ", 0, index) + 1)


def is_without_spaces(text: str) -> bool:
    """Returns whether a text has a character of a script without spaces."""
    return _WITHOUT_SPACES.search(text) is not None


def piece_spans(
    word: str, pieces: Sequence[str], basic_tokens: Callable[[str], Sequence[str]]
) -> list[tuple[int, int]] | None:
    """Returns the start and the end of each piece in the word.

    Args:
        word: text between white space.
        pieces: its word pieces. [UNK] stands for a whole token.
        basic_tokens: splits text as the tokenizer does before word pieces.

    Returns:
        None if the characters cannot be matched, because the tokenizer changes their
        number depending on their neighbours.
    """
    # The character that each letter of the tokens comes from: "é" gives one letter,
    # "지" three, a control character none.
    owners = [i for i, one in enumerate(word) for _ in "".join(basic_tokens(one))]
    tokens = basic_tokens(word)
    if len(owners) != sum(map(len, tokens)):
        return None
    with_letters = set(owners)
    spans, rest, letter, token_end = [], iter(pieces), 0, 0
    for token in tokens:
        token_end += len(token)
        while letter < token_end:
            piece = next(rest, None)
            size = len((piece or "").removeprefix(wordpiece.CONTINUATION))
            if piece == vocabulary_module.UNK:
                size = token_end - letter
            if not 0 < size <= token_end - letter:
                return None
            end = owners[letter + size - 1] + 1
            # Accents that the tokenizer removes belong to the letter before them.
            while end < len(word) and unicodedata.category(word[end]) == "Mn":
                if end in with_letters:
                    break
                end += 1
            spans.append((owners[letter], end))
            letter += size
    return spans if next(rest, None) is None else None
