"""Splits plain text into words, and restores the usual case of headlines.

Training files divide text into words as a person would: "U.S." and "Port-au-Prince" are
one word each, and the comma after "Rome," is a separate word. Therefore text is split
at white space, and only outer punctuation is split off. `serving.tag_signatures` does
the same in a graph.

Named entities are tagged with a cased model, since capitals mark names in English
(arXiv:1810.04805, section 5.3). But a cased vocabulary lacks "JAPAN" and "LUCKY": it
splits them into pieces of one or two letters, which the encoder has rarely seen
together, and entities in headlines are missed. True-casing gives the words of such a
sentence the case that they have elsewhere: "Japan get lucky win".
"""

import collections
import dataclasses
import itertools
import logging
import math
import re
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf.tokenization import characters

logger = logging.getLogger(__name__)

# The punctuation of Chinese and Japanese, which have no spaces between words.
_WIDE_BLOCKS = (range(0x3000, 0x3040), range(0xFE10, 0xFE70), range(0xFF00, 0xFF65))
_DASHES_AND_ELLIPSIS = (0x2014, 0x2015, 0x2026)
# Each of these is a word, even between two letters: Chinese characters, and marks
# that are written without spaces on both sides.
ALONE = frozenset(
    itertools.chain(
        _DASHES_AND_ELLIPSIS,
        *characters.CHINESE_BLOCKS,
        *(characters.PUNCTUATION.intersection(block) for block in _WIDE_BLOCKS),
    )
)
APOSTROPHE, TYPOGRAPHIC_APOSTROPHE = "'", "\u2019"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words:
    """The words of a text and their positions."""

    text: str
    words: tuple[str, ...]
    starts: tuple[int, ...]  # Index of each word's first character.
    ends: tuple[int, ...]  # Index after each word's last character.


def split_text(text: str, whole_words: Collection[str] = frozenset()) -> Words:
    """Splits a text into words at white space and splits off outer punctuation.

    * Every punctuation mark before or after a word is a word of its own, but equal
      marks in a row are one: "Wait..." is "Wait" and "...".
    * The full stop of an abbreviation stays: "U.S.", "e.g.", and after a single letter,
      as in "J. Doe", unless the text ends there ("Plan B.").
    * Chinese characters, their punctuation, dashes (—) and ellipses (…) are single
      words.

    Args:
        text: the text.
        whole_words: words that are not divided, such as "Corp."; see
            `learned_whole_words`. Those that begin with an apostrophe are also split
            off the end of a word: with "'s", "John's" is "John" and "'s".

    Example:
        >>> split_text('"U.S. aid," he said.').words
        ('"', 'U.S.', 'aid', ',', '"', 'he', 'said', '.')
    """
    chunks = list(_CHUNK.finditer(text))
    borders = []
    for chunk in chunks:
        is_last = chunk is chunks[-1]
        within = _borders(chunk.group(), whole_words, is_last=is_last)
        borders += [
            (chunk.start() + start, chunk.start() + end)
            for start, end in itertools.pairwise(within)
        ]
    return Words(
        text=text,
        words=tuple(text[start:end] for start, end in borders),
        starts=tuple(start for start, _ in borders),
        ends=tuple(end for _, end in borders),
    )


def joined(words: Sequence[str]) -> Words:
    """Returns words as a text with one space between them."""
    ends = list(itertools.accumulate((len(word) + 1 for word in words), initial=0))
    return Words(
        text=" ".join(words),
        words=tuple(words),
        starts=tuple(ends[:-1]),
        ends=tuple(end - 1 for end in ends[1:]),
    )


def warn_of_undivided(
    texts: Iterable[Words], whole_words: Collection[str], longest: int, *, advice: str
) -> None:
    """Logs a warning if words of plain text are probably several words each.

    Args:
        texts: from `split_text`.
        whole_words: as for `split_text`.
        longest: length of the longest word of the training data; 0: unknown.
        advice: what to do instead of passing plain text.
    """
    limit = 2 * longest or math.inf
    words = [
        word
        for text in texts
        for word in text.words
        if word not in whole_words and (len(word) > limit or _SEVERAL.search(word))
    ]
    if words:
        logger.warning(
            "Words of the text (%d), such as %r, are probably several words, but get "
            "one tag each: text is divided only at white space and at the punctuation "
            "around words. %s",
            len(words),
            f"{words[0]:.40}",
            advice,
        )


def learned_whole_words(sentences: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Returns the words of training sentences that `split_text` would divide, sorted.

    Args:
        sentences: the words of each sentence.

    Example:
        >>> learned_whole_words([["Acme", "Corp.", "left", "the", "U.S.", "."]])
        ('Corp.',)
    """
    words = {word for words in sentences for word in words}
    # A word with white space or a Chinese character can never be found again.
    chunks = set(filter(_CHUNK.fullmatch, words))
    learned: set[str] = set()
    # The second pass finds words with a suffix that the first one learned: "Lloyd's".
    for _ in range(2):
        learned |= {
            word for word in chunks if len(_borders(word, learned, is_last=True)) > 2
        }
    return tuple(sorted(learned))


def is_all_capitals(words: Sequence[str]) -> bool:
    """Returns whether a sentence has two words in capitals and no lowercase letter.

    Only words of two or more letters count as words in capitals, so "A" does not.
    """
    cased = [word for word in words if word.lower() != word.upper()]
    capitals = [word for word in cased if sum(map(str.isalpha, word)) > 1]
    return len(capitals) > 1 and all(word == word.upper() for word in cased)


def learned_cases(sentences: Iterable[Sequence[str]]) -> dict[str, str]:
    """Returns the most frequent form of each word, by the word in lower case.

    Sentences in capitals are ignored, as is the first word of every sentence, which is
    always capitalized. Words that usually have one capital first letter, like "Japan",
    are omitted, because `true_cased` writes unknown words in this form.

    Args:
        sentences: the words of each sentence.

    Example:
        >>> learned_cases([["The", "UN", "meets", "Japan"]])
        {'un': 'UN', 'meets': 'meets'}
    """
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for words in sentences:
        if not is_all_capitals(words):
            for word in words[1:]:
                counts[word.lower()][word] += 1
    usual = {
        # Between equally frequent forms, the one that sorts last: lower case.
        lower: max(forms.items(), key=lambda item: (item[1], item[0]))[0]
        for lower, forms in counts.items()
    }
    return {lower: word for lower, word in usual.items() if word != _as_name(lower)}


def true_cased(words: Sequence[str], cases: Mapping[str, str]) -> list[str]:
    """Returns the words of a sentence; if it is in capitals, in their usual case.

    Args:
        words: the words of the sentence.
        cases: the result of `learned_cases`. A word that it lacks gets a capital first
            letter, because most of these are names.

    Example:
        >>> true_cased(["JAPAN", "GET", "LUCKY", "WIN"], {"get": "get", "win": "win"})
        ['Japan', 'get', 'Lucky', 'win']
    """
    if not is_all_capitals(words):
        return list(words)
    return [cases.get(word.lower(), _as_name(word.lower())) for word in words]


# A run of characters between white space. The characters in `ALONE` are single.
_ALONE = characters.character_class(ALONE)
_SPACE = characters.character_class(characters.WHITESPACE)
_CHUNK = re.compile(f"[{_ALONE}]|[^{_ALONE}{_SPACE}]+")
# "Anna,Bob", or more than one character, at least one of a script without spaces.
_SEVERAL = re.compile(
    rf"[^\W\d_][,;!?][^\W\d_]|[{characters.SCRIPTS_WITHOUT_SPACES}]."
    f"|.[{characters.SCRIPTS_WITHOUT_SPACES}]"
)
_LETTER = f"[{characters.character_class(characters.CASED)}]"
INITIAL = rf"{_LETTER}\."  # "J."
ABBREVIATION = rf"({_LETTER}{{1,2}}\.){{2,}}"  # "U.S.", "e.g.", "Ph.D."


def _borders(chunk, whole_words, *, is_last):
    """Returns where the words of a chunk begin, and its length."""
    length = len(chunk)
    if chunk in whole_words:
        return [0, length]
    is_mark = [ord(character) in characters.PUNCTUATION for character in chunk]
    if all(is_mark):
        begin = end = divided = 0
    else:
        begin = is_mark.index(False)
        end = length - is_mark[::-1].index(False)
        if end < length and _is_whole(chunk[begin : end + 1], whole_words, is_last):
            end += 1
        if begin > 0 and chunk[begin - 1 : end] in whole_words:
            begin -= 1
        plain = chunk.replace(TYPOGRAPHIC_APOSTROPHE, APOSTROPHE)
        divided = plain.rfind(APOSTROPHE, begin, end)
        if divided <= begin or plain[divided:end] not in whole_words:
            divided = begin
    marks = [*range(1, begin), *range(end + 1, length)]
    return sorted(
        {0, begin, divided, end, length}
        | {place for place in marks if chunk[place] != chunk[place - 1]}
    )


def _is_whole(word, whole_words, is_last):
    """Returns whether the punctuation mark at the end of a word belongs to it."""
    if word in whole_words or re.fullmatch(ABBREVIATION, word):
        return True
    return not is_last and bool(re.fullmatch(INITIAL, word))


def _as_name(lower):
    return lower[:1].upper() + lower[1:]
