"""What each code point becomes, as arrays that a TensorFlow graph can look up.

An entry is an int32: flags in the lowest bits, above them either the distance from the
code point to what it becomes, or a row of `CodePointTable.expansions`. All 1,114,112
entries of Unicode are kept as a table of pages, most of which are equal.
"""

import dataclasses

import numpy as np

from bert_tf.tokenization import characters
from bert_tf.tokenization import unicode_14

NUM_CODE_POINTS = 0x110000
PAGE_BITS = 7  # Measured: the smallest sum of pages and page numbers.

# Flags of an entry. The first two are also how far the number of the word moves on.
SPACE = 1  # Ends a word and is dropped.
ALONE = 2  # A word of its own: punctuation, Chinese.
DROPPED = 4  # Vanishes without ending a word.
SEVERAL = 8  # Becomes several code points: the value is a row of `expansions`.
MARK = 16  # Becomes, or holds, a mark that canonical ordering may have to move.
FLAG_BITS = 5

# Properties.
CASED = 1  # Of `unicode_14.CASED`.
IGNORABLE = 2  # Not looked at when a final sigma is sought: case-ignorable or deleted.
JOINS = 4  # Does not end a run of marks within which canonical ordering works.
PROPERTY_BITS = 3  # Above them the combining class of a mark that is not dropped.


@dataclasses.dataclass(frozen=True, kw_only=True)
class PagedTable:
    """A value for every code point, in pages of 2 ** PAGE_BITS values."""

    page_starts: np.ndarray  # int32: where in `values` a page starts.
    values: np.ndarray  # int32: the different pages, one after the other.


@dataclasses.dataclass(frozen=True, kw_only=True)
class CodePointTable:
    """What a tokenizer with certain options does to each code point."""

    entries: PagedTable  # Flags, and distance or row of `expansions`.
    properties: PagedTable  # For final sigmas and canonical ordering.
    expansions: np.ndarray  # int32: code points of all expansions, end to end.
    expansion_splits: np.ndarray  # int32: row r is [splits[r], splits[r + 1]).


def code_point_table(*, do_lower_case, strip_accents):
    """Returns the `CodePointTable` for two options of the tokenizers."""
    entries = np.zeros(NUM_CODE_POINTS, np.int32)
    expansions, splits = [], [0]
    for code in _changed_codes(do_lower_case, strip_accents):
        mapped = _mapped(chr(code), do_lower_case, strip_accents)
        if len(mapped) > 1:
            entries[code] = len(splits) - 1 << FLAG_BITS | SEVERAL
            expansions.extend(map(ord, mapped))
            splits.append(len(expansions))
        else:
            entries[code] = ord(mapped) - code << FLAG_BITS if mapped else DROPPED
        if any(ord(c) in characters.PUNCTUATION for c in mapped):
            entries[code] |= ALONE
        if any(_is_moving_mark(ord(c)) for c in mapped):
            entries[code] |= MARK
    for block in characters.CHINESE_BLOCKS:
        entries[block.start : block.stop] |= ALONE
    entries[list(characters.WHITESPACE)] = SPACE
    entries[list(characters.DELETED)] = DROPPED
    return CodePointTable(
        entries=_paged(entries),
        properties=_paged(_properties()),
        expansions=np.array(expansions, np.int32),
        expansion_splits=np.array(splits, np.int32),
    )


def _changed_codes(do_lower_case, strip_accents):
    """Returns the sorted code points whose entry may be other than 0."""
    codes = set(characters.PUNCTUATION)
    if do_lower_case:
        codes.update(unicode_14.LOWER)
    if strip_accents:
        codes.update(unicode_14.NONSPACING_MARK, unicode_14.DECOMPOSITION)
        codes.update(unicode_14.COMBINING_CLASS)
    return sorted(codes)


def _mapped(text, do_lower_case, strip_accents):
    if do_lower_case:
        # Not characters.lower: a single sigma is no final one.
        text = text.translate(unicode_14.LOWER)
    return characters.strip_accents(text) if strip_accents else text


def _is_moving_mark(code):
    is_dropped = code in unicode_14.NONSPACING_MARK
    return code in unicode_14.COMBINING_CLASS and not is_dropped


def _properties():
    properties = np.zeros(NUM_CODE_POINTS, np.int32)
    properties[list(unicode_14.CASED)] |= CASED
    properties[list(unicode_14.CASE_IGNORABLE | characters.DELETED)] |= IGNORABLE
    properties[list(characters.DELETED)] |= JOINS
    for code, combining_class in unicode_14.COMBINING_CLASS.items():
        properties[code] |= JOINS
        if _is_moving_mark(code):
            properties[code] |= combining_class << PROPERTY_BITS
    for code, decomposed in unicode_14.DECOMPOSITION.items():
        if all(ord(c) in unicode_14.COMBINING_CLASS for c in decomposed):
            properties[code] |= JOINS
    return properties


def _paged(values):
    pages = values.reshape(-1, 1 << PAGE_BITS)
    starts, different = {}, []
    page_starts = np.zeros(len(pages), np.int32)
    for number, page in enumerate(pages):
        content = page.tobytes()
        if content not in starts:
            starts[content] = len(different) << PAGE_BITS
            different.append(page)
        page_starts[number] = starts[content]
    return PagedTable(page_starts=page_starts, values=np.concatenate(different))
