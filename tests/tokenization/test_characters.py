import random
import sys
import unicodedata

import pytest

from bert_tf.tokenization import characters

needs_unicode_14 = pytest.mark.skipif(
    unicodedata.unidata_version != "14.0.0",
    reason="only Python 3.11's own functions are Unicode 14.0, the reference",
)


@pytest.mark.parametrize(
    "character, whitespace, control, punctuation, chinese",
    [
        (" ", True, False, False, False),
        ("\t", True, False, False, False),  # A control character to Unicode.
        ("\u00a0", True, False, False, False),  # No-break space.
        ("\u2028", True, False, False, False),  # Not Zs, but words are split there.
        ("\x00", False, True, False, False),
        ("\ufffd", False, True, False, False),  # What a decoder puts for bad bytes.
        ("\x0b", False, True, False, False),  # Vertical tab: white space to Python.
        ("\x85", False, True, False, False),
        ("\u200d", False, True, False, False),  # Zero-width joiner.
        ("\u00ad", False, True, False, False),  # Soft hyphen.
        ("$", False, False, True, False),  # A symbol to Unicode.
        ("`", False, False, True, False),
        ("_", False, False, True, False),
        ("。", False, False, True, False),
        ("½", False, False, False, False),
        ("€", False, False, False, False),
        ("中", False, False, False, True),
        ("\uf900", False, False, False, True),  # Compatibility ideograph.
        ("\U00020000", False, False, False, True),
        ("\U0002ebef", False, False, False, False),  # An extension after 2018's list.
        ("한", False, False, False, False),  # Hangul has spaces between words.
        ("ア", False, False, False, False),
        ("\ue000", False, False, False, False),  # Private use is kept.
        ("\U0001fae8", False, False, False, False),  # Emoji of Unicode 15.0.
        ("\U00013439", False, False, False, False),  # Control of 15.0: unassigned.
        ("\U00011f43", False, False, False, False),  # Punctuation of 15.0: likewise.
    ],
)
def test_what_a_character_is(character, whitespace, control, punctuation, chinese):
    assert (ord(character) in characters.WHITESPACE) == whitespace
    assert (ord(character) in characters.DELETED) == control
    assert (ord(character) in characters.PUNCTUATION) == punctuation
    assert characters.is_chinese(character) == chinese


@pytest.mark.parametrize(
    "word, lowered",
    [
        ("TITLE", "title"),
        ("İI", "i\u0307i"),  # Never a Turkish dotless i.
        ("ΌΣΟΣ", "όσος"),  # The sigma that ends a word.
        ("Σ", "σ"),  # Alone it ends nothing.
        ("ΑΣ'Α", "ασ'α"),  # An apostrophe is skipped.
        ("ΑΣ.", "ας."),
        ("ΑΣ\u0301", "ας\u0301"),  # And so is a mark.
        ("Α\u0301Σ", "α\u0301ς"),
        ("1Σ", "1σ"),  # A digit has no case.
        ("ΑΣ中", "ας中"),
        ("ẞ", "ß"),
        ("ﬁ", "ﬁ"),  # No compatibility mapping.
        ("\ua7cb", "\ua7cb"),  # Upper case since Unicode 16.0 only.
    ],
)
def test_lower(word, lowered):
    assert characters.lower(word) == lowered


@pytest.mark.parametrize(
    "word, stripped",
    [
        ("café", "cafe"),
        ("cafe\u0301", "cafe"),
        ("Ångström", "Angstrom"),
        ("ø", "ø"),  # A separate letter.
        ("İ", "I"),
        ("한", "\u1112\u1161\u11ab"),  # Into jamo, which are not marks.
        ("≠", "="),
        ("\u1fef", "`"),
        ("…", "…"),  # No compatibility decomposition.
        ("कि", "कि"),  # A spacing mark stays.
        # Spacing marks with a class are put in order: 9 before 224.
        ("a\u302e\u1b44", "a\u1b44\u302e"),
        ("a\u302e\u0301\u1b44", "a\u1b44\u302e"),
        ("a\u302e\u0bbe\u1b44", "a\u302e\u0bbe\u1b44"),  # Class 0 comes between.
    ],
)
def test_strip_accents(word, stripped):
    assert characters.strip_accents(word) == stripped


@needs_unicode_14
def test_every_code_point_is_lowered_and_decomposed_as_python_3_11_does():
    for character in map(chr, range(sys.maxunicode + 1)):
        assert characters.lower(character) == character.lower()
        normal = unicodedata.normalize("NFD", character)
        assert characters.decompose(character) == normal


@pytest.mark.slow
@needs_unicode_14
def test_the_properties_of_every_code_point_are_those_of_python_3_11():
    category, combining = unicodedata.category, unicodedata.combining
    every = list(map(chr, range(sys.maxunicode + 1)))

    def codes(is_in):
        return {ord(character) for character in every if is_in(character)}

    assert codes(lambda c: category(c) in ("Cc", "Cf")) == characters.CONTROL
    assert codes(lambda c: category(c) == "Zs") == characters.SPACE
    assert (
        codes(lambda c: category(c).startswith("P")) == characters.UNICODE_PUNCTUATION
    )
    assert codes(lambda c: category(c) == "Mn") == characters.NONSPACING_MARK
    classes = {ord(c): combining(c) for c in every if combining(c)}
    assert classes == characters.COMBINING_CLASS
    # A sigma is final after a cased character, and ignorable ones between them.
    cased = codes(lambda c: f"{c}Σ".lower().endswith("ς"))
    assert cased == characters.CASED
    between = codes(lambda c: f"A{c}Σ".lower().endswith("ς"))
    assert between - cased == characters.CASE_IGNORABLE


@needs_unicode_14
def test_random_words_are_lowered_and_decomposed_as_python_3_11_does():
    draw = random.Random(1)
    by_category = {}
    for character in map(chr, range(sys.maxunicode + 1)):
        kind = unicodedata.category(character), unicodedata.combining(character)
        by_category.setdefault(kind, []).append(character)
    kinds = sorted(by_category)
    for _ in range(20_000):
        word = "".join(
            draw.choice("ΣΣAa'" + draw.choice(by_category[draw.choice(kinds)]))
            for _ in range(draw.randrange(12))
        )
        assert characters.lower(word) == word.lower()
        assert characters.decompose(word) == unicodedata.normalize("NFD", word)
