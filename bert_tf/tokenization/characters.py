"""Classes of characters, and how words are normalized.

Everything here follows tokenization.py of the 2018 release, under Unicode 14.0.
"""

import itertools
import re
from collections.abc import Iterable

from bert_tf.tokenization import unicode_14

CAPITAL_SIGMA = 0x03A3
SMALL_SIGMA, FINAL_SIGMA = "\u03c3", "\u03c2"
REPLACEMENT_CHARACTER = 0xFFFD

# The CJK Unified Ideographs blocks and the compatibility ideographs. Hangul, Hiragana
# and Katakana are not split: in these scripts one character is rarely a whole word.
CHINESE_BLOCKS = (
    range(0x4E00, 0xA000),
    range(0x3400, 0x4DC0),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B820, 0x2CEB0),
    range(0xF900, 0xFB00),
    range(0x2F800, 0x2FA20),
)

# Thai, Lao, Tibetan, Burmese, Khmer, Japanese kana, and Chinese characters: the inside
# of a character class. A "word" between spaces may be a whole paragraph there.
SCRIPTS_WITHOUT_SPACES = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0002fa1f"
)

# Every ASCII character that is neither a letter nor a digit counts as punctuation, even
# "$" and "^", which Unicode classifies as symbols.
ASCII_PUNCTUATION = frozenset(
    [*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127)]
)
PUNCTUATION = unicode_14.PUNCTUATION | ASCII_PUNCTUATION

# White space separates words. The line and paragraph separators are not in category Zs,
# but `str.split` in the release splits at them, so they belong here.
LINE_SEPARATORS = frozenset([0x2028, 0x2029])
WHITESPACE = unicode_14.SPACE | LINE_SEPARATORS | frozenset(map(ord, "\t\n\r"))

# Deleted without leaving a space, so the characters on both sides are joined.
DELETED = (unicode_14.CONTROL | {0, REPLACEMENT_CHARACTER}) - WHITESPACE

# Marks subject to canonical ordering, and the table with which `str.translate` drops
# marks.
_COMBINING = frozenset(map(chr, unicode_14.COMBINING_CLASS))
_NO_MARKS = dict.fromkeys(unicode_14.NONSPACING_MARK)


def character_class(codes: Iterable[int]) -> str:
    """Returns the inside of a character class, for Python's `re` and for RE2."""
    ordered = sorted(codes)
    runs = itertools.groupby(enumerate(ordered), lambda pair: pair[1] - pair[0])
    ends = [(run[0][1], run[-1][1]) for run in (list(run) for _, run in runs)]
    return "".join(
        f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ends
    )


def is_chinese(character: str) -> bool:
    """Returns whether a character is a CJK ideograph, hence a separate token."""
    code = ord(character)
    return any(code in block for block in CHINESE_BLOCKS)


def lower(word: str) -> str:
    """Returns a word in lower case, as `str.lower` does under Unicode 14.0.

    A capital sigma at the end of the word becomes the final form.
    """
    if word.isascii():
        return word.lower()
    if chr(CAPITAL_SIGMA) in word:
        word = "".join(
            FINAL_SIGMA if is_final_sigma(word, position) else character
            for position, character in enumerate(word)
        )
    return word.translate(unicode_14.LOWER)


def is_final_sigma(word: str, position: int) -> bool:
    """Returns whether the character at a position is a capital sigma that ends a word.

    That is: skipping case-ignorable characters, a cased character comes before it and
    none after it (Unicode 14.0, section 3.13, Final_Sigma).
    """
    if ord(word[position]) != CAPITAL_SIGMA:
        return False
    before = _first_not_ignorable(reversed(word[:position]))
    after = _first_not_ignorable(word[position + 1 :])
    return before in unicode_14.CASED and after not in unicode_14.CASED


def decompose(word: str) -> str:
    """Returns a word in normalization form D under Unicode 14.0."""
    if word.isascii():
        return word
    decomposed = word.translate(unicode_14.DECOMPOSITION)
    if _COMBINING.isdisjoint(decomposed):
        return decomposed
    ordered: list[str] = []
    marks: list[tuple[int, str]] = []
    for character in decomposed:
        combining_class = unicode_14.COMBINING_CLASS.get(ord(character), 0)
        if combining_class == 0:
            ordered += _in_canonical_order(marks)
            ordered.append(character)
            marks = []
        else:
            marks.append((combining_class, character))
    return "".join(ordered + _in_canonical_order(marks))


def strip_accents(word: str) -> str:
    """Returns a word decomposed (NFD) and without its nonspacing marks."""
    if word.isascii():
        return word
    stripped = word.translate(unicode_14.DECOMPOSITION).translate(_NO_MARKS)
    # A few marks are not nonspacing and stay. Their canonical order depends on the
    # marks that are dropped, so these words need the slow path.
    if _COMBINING.isdisjoint(stripped):
        return stripped
    return decompose(word).translate(_NO_MARKS)


def _first_not_ignorable(characters: Iterable[str]) -> int | None:
    codes = map(ord, characters)
    return next((c for c in codes if c not in unicode_14.CASE_IGNORABLE), None)


def _in_canonical_order(marks):
    return [character for _, character in sorted(marks, key=lambda mark: mark[0])]
