"""Unicode 14.0, the version that defines the token ids.

Python's own `unicodedata` changes with the Python version, and ids must not change with
it. Characters that Unicode added after 14.0 are always treated as unassigned. The
properties are read from `unicode_14.txt` beside this module.

Attributes (sets of code points unless noted otherwise):
    CONTROL: general categories Cc and Cf.
    SPACE: general category Zs.
    PUNCTUATION: general categories P*.
    NONSPACING_MARK: general category Mn.
    CASED: cased and not case-ignorable, as the final sigma rule needs it.
    CASE_IGNORABLE: case-ignorable, for the same rule.
    COMBINING_CLASS: dict, code point to canonical combining class if that is not 0.
    LOWER: dict, code point to its lowercase text if that differs.
    DECOMPOSITION: dict, code point to its full canonical decomposition (text) where
        if that differs, including Hangul syllables.
"""

import pathlib

HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
# Unicode 14.0, section 3.12: the first jamo of each kind, and the number of vowels and
# finals.
HANGUL_LEADS, HANGUL_VOWELS, HANGUL_FINALS = 0x1100, 0x1161, 0x11A7
NUM_HANGUL_VOWELS, NUM_HANGUL_FINALS = 21, 28


def _read():
    """Returns the values of the file: a dictionary of name to list of strings."""
    values: dict[str, list[str]] = {}
    path = pathlib.Path(__file__).with_suffix(".txt")
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
PUNCTUATION = frozenset(_codes(_VALUES["punctuation"]))
NONSPACING_MARK = frozenset(_codes(_VALUES["nonspacing_mark"]))
CASED = frozenset(_codes(_VALUES["cased"]))
CASE_IGNORABLE = frozenset(_codes(_VALUES["case_ignorable"]))
COMBINING_CLASS = dict(_numbered(_VALUES, "class"))
LOWER = {code: chr(code + n) for code, n in _numbered(_VALUES, "lower")}
LOWER.update(_mappings(_VALUES["lower"]))
DECOMPOSITION = dict(_mappings(_VALUES["decomposition"]))
DECOMPOSITION.update((code, _hangul_decomposition(code)) for code in HANGUL_SYLLABLES)
del _VALUES
