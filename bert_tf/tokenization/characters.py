"""Classes of characters, and how words are normalized.

Everything here follows tokenization.py of the 2018 release, under Unicode 14.0, whose
properties are read from `unicode_14.txt` beside this module. Python's own `unicodedata`
changes with the Python version, and ids must not change with it. Characters that
Unicode added after 14.0 are always treated as unassigned.

Attributes from that file (sets of code points unless noted otherwise):
    CONTROL: general categories Cc and Cf.
    SPACE: general category Zs.
    UNICODE_PUNCTUATION: general categories P*.
    NONSPACING_MARK: general category Mn.
    CASED: cased and not case-ignorable, as the final sigma rule needs it.
    CASE_IGNORABLE: case-ignorable, for the same rule.
    COMBINING_CLASS: dict, code point to canonical combining class if that is not 0.
    LOWER: dict, code point to its lowercase text if that differs.
    DECOMPOSITION: dict, code point to its full canonical decomposition (text) if
        that differs, including Hangul syllables.
"""

import itertools
import pathlib
import re
from collections.abc import Iterable

HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
# Unicode 14.0, section 3.12: the first jamo of each kind, and the number of vowels and
# finals.
HANGUL_LEADS, HANGUL_VOWELS, HANGUL_FINALS = 0x1100, 0x1161, 0x11A7
NUM_HANGUL_VOWELS, NUM_HANGUL_FINALS = 21, 28


def _read():
    """Returns the values of the file: a dictionary of name to list of strings."""
    values: dict[str, list[str]] = {}
    path = pathlib.Path(__file__).with_name("unicode_14.txt")
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, *fields = line.split()
            values.setdefault(name, []).extend(fields)
    return values


def _codes(fields):
    """Yields the code points of fields: "0041-005A", "0100-012E/2", "0130"."""
    for field in fields:
        ends, _, step = field.partition("/")
        first, _, last = ends.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1, int(step or 1))


def _numbered(values, prefix):
    """Yields (code point, n) for the lines named `prefix:n`."""
    for name, fields in values.items():
        if name.startswith(prefix + ":"):
            number = int(name.removeprefix(prefix + ":"))
            yield from ((code, number) for code in _codes(fields))


def _mappings(fields):
    """Yields (code point, text) for "00C0=0041+0300"."""
    for field in fields:
        code, _, mapped = field.partition("=")
        yield int(code, 16), "".join(chr(int(c, 16)) for c in mapped.split("+"))


def _hangul_decomposition(code):
    index = code - HANGUL_SYLLABLES.start
    index, final = divmod(index, NUM_HANGUL_FINALS)
    lead, vowel = divmod(index, NUM_HANGUL_VOWELS)
    text = chr(HANGUL_LEADS + lead) + chr(HANGUL_VOWELS + vowel)
    return text + (chr(HANGUL_FINALS + final) if final else "")


_VALUES = _read()
CONTROL = frozenset(_codes(_VALUES["control"]))
SPACE = frozenset(_codes(_VALUES["space"]))
UNICODE_PUNCTUATION = frozenset(_codes(_VALUES["punctuation"]))
NONSPACING_MARK = frozenset(_codes(_VALUES["nonspacing_mark"]))
CASED = frozenset(_codes(_VALUES["cased"]))
CASE_IGNORABLE = frozenset(_codes(_VALUES["case_ignorable"]))
COMBINING_CLASS = dict(_numbered(_VALUES, "class"))
LOWER = {code: chr(code + n) for code, n in _numbered(_VALUES, "lower")}
LOWER.update(_mappings(_VALUES["lower"]))
DECOMPOSITION = dict(_mappings(_VALUES["decomposition"]))
DECOMPOSITION.update((code, _hangul_decomposition(code)) for code in HANGUL_SYLLABLES)
del _VALUES

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
PUNCTUATION = UNICODE_PUNCTUATION | ASCII_PUNCTUATION

# White space separates words. The line and paragraph separators are not in category Zs,
# but `str.split` in the release splits at them, so they belong here.
LINE_SEPARATORS = frozenset([0x2028, 0x2029])
WHITESPACE = SPACE | LINE_SEPARATORS | frozenset(map(ord, "\t\n\r"))

# Deleted without leaving a space, so the characters on both sides are joined.
DELETED = (CONTROL | {0, REPLACEMENT_CHARACTER}) - WHITESPACE

# Marks subject to canonical ordering, and the table with which `str.translate` drops
# marks.
_COMBINING = frozenset(map(chr, COMBINING_CLASS))
_NO_MARKS = dict.fromkeys(NONSPACING_MARK)


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
    return word.translate(LOWER)


def is_final_sigma(word: str, position: int) -> bool:
    """Returns whether the character at a position is a capital sigma that ends a word.

    That is: skipping case-ignorable characters, a cased character comes before it and
    none after it (Unicode 14.0, section 3.13, Final_Sigma).
    """
    if ord(word[position]) != CAPITAL_SIGMA:
        return False
    before = _first_not_ignorable(reversed(word[:position]))
    after = _first_not_ignorable(word[position + 1 :])
    return before in CASED and after not in CASED


def decompose(word: str) -> str:
    """Returns a word in normalization form D under Unicode 14.0."""
    if word.isascii():
        return word
    decomposed = word.translate(DECOMPOSITION)
    if _COMBINING.isdisjoint(decomposed):
        return decomposed
    ordered: list[str] = []
    marks: list[tuple[int, str]] = []
    for character in decomposed:
        combining_class = COMBINING_CLASS.get(ord(character), 0)
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
    stripped = word.translate(DECOMPOSITION).translate(_NO_MARKS)
    # A few marks are not nonspacing and stay. Their canonical order depends on the
    # marks that are dropped, so these words need the slow path.
    if _COMBINING.isdisjoint(stripped):
        return stripped
    return decompose(word).translate(_NO_MARKS)


def _first_not_ignorable(characters: Iterable[str]) -> int | None:
    codes = map(ord, characters)
    return next((c for c in codes if c not in CASE_IGNORABLE), None)


def _in_canonical_order(marks):
    return [character for _, character in sorted(marks, key=lambda mark: mark[0])]
