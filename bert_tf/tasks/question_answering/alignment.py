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

import dataclasses
import functools
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
        self._places: _PiecePlaces | None = None  # Of the last context.

    def spans_of(self, tokenized: Any) -> Callable[[int, int], Span]:
        """Returns a function from the pieces of an answer to its text and position.

        Its arguments are the indices of the answer's first and last piece in the
        context. The function is called at least twenty times per question, so it only
        looks up the places of the pieces where they are known.

        Args:
            tokenized: the context.
        """
        if self._places is None or self._places.tokenized is not tokenized:
            self._places = self._piece_places(tokenized)
        places = self._places
        text, text_starts, text_ends = places.text, places.text_starts, places.text_ends
        starts, ends = places.context_starts, places.context_ends
        inexact_before, inexact_through = places.inexact_before, places.inexact_through

        def span(first, last):
            if inexact_before[first] == inexact_through[last]:
                answer = text[text_starts[first] : text_ends[last]]
                return answer, starts[first], ends[last]
            return self._searched(tokenized, first, last)

        return span

    def _piece_places(self, tokenized):
        words, word = tokenized.context.words, tokenized.word_of_piece
        ids = np.array(tokenized.piece_ids, np.int64)
        counts = self._num_letters[ids]
        before = np.cumsum(counts) - counts  # Letters before each piece.
        is_first = np.diff(word, prepend=-1) > 0  # Of its word.
        in_word = before - before[is_first].repeat(np.bincount(word)[word[is_first]])
        lengths = np.array([len(one) for one in words], np.int64)
        is_exact = np.bincount(word, counts, minlength=len(words)) == lengths
        is_exact[word[ids == self._unk_id]] = False
        num_inexact = np.cumsum(~is_exact)
        in_text = (np.cumsum(lengths + 1) - lengths - 1)[word] + in_word
        in_context = np.array(tokenized.context.starts, np.int64)[word] + in_word
        return _PiecePlaces(
            tokenized=tokenized,
            text=" ".join(words),
            text_starts=in_text.tolist(),
            text_ends=(in_text + counts).tolist(),
            context_starts=in_context.tolist(),
            context_ends=(in_context + counts).tolist(),
            inexact_before=np.where(
                is_first, (num_inexact - ~is_exact)[word], -1
            ).tolist(),
            inexact_through=num_inexact[word].tolist(),
        )

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
        place = self._aligned(answer, tokens, text)
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

    def _aligned(self, answer, tokens, text):
        """Returns where the answer starts and ends in `text`, the joined words.

        Returns None if its letters cannot be matched in `tokens`, the joined tokens.
        """
        start = tokens.find(answer)
        if start < 0 or not answer:
            self._log("Unable to find text: '%s' in '%s'", answer, text)
            return None
        # Counting letters works only if tokenization kept all of them. It removes
        # control characters and, when it lowercases, combining accents.
        if len(text) - text.count(" ") != len(tokens) - tokens.count(" "):
            self._log(
                "Length not equal after stripping spaces: '%s' vs '%s'", text, tokens
            )
            return None
        end = start + len(answer) - 1
        first = start - tokens.count(" ", 0, start)
        last = end - tokens.count(" ", 0, end)
        return _index_of_letter(text, first), _index_of_letter(text, last) + 1

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class _PiecePlaces:
    """Where the pieces of a context are; all lists have one entry per piece.

    A word is exact if its pieces have as many letters as the word itself, so that each
    piece has its place in the word. The places of the other words' pieces are wrong.
    """

    tokenized: Any
    text: str  # The words, with one space between them.
    text_starts: list[int]  # In `text`.
    text_ends: list[int]
    context_starts: list[int]  # In the context.
    context_ends: list[int]
    # Number of inexact words before the piece's word. An answer without inexact words
    # has the places above. -1 for a piece within a word, since the release may find the
    # same letters earlier: in "1895-1895".
    inexact_before: list[int]
    inexact_through: list[int]  # The same number, the piece's word included.


def _index_of_letter(text, number):
    """Returns the index of a text's n-th letter, counted from 0 without spaces."""
    index = number
    # Each space before the letter adds one to its index.
    while True:
        moved = number + text.count(" ", 0, index + 1)
        if moved == index:
            return index
        index = moved


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
