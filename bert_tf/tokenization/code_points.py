"""Tables that map every code point to its normalized form, for a TensorFlow graph.

An entry is an int32. Its lowest bits are flags. The bits above them hold either the
difference between the mapped code point and the original one, or a row number of
`CodePointTable.expansions`. Most of the 1,114,112 entries are equal, so they are stored
as pages, and equal pages are stored once.
"""

import dataclasses
import functools

import numpy as np

from bert_tf.tokenization import characters
from bert_tf.tokenization import unicode_14

NUM_CODE_POINTS = 0x110000
PAGE_BITS = 7  # Measured: the smallest sum of pages and page numbers.

# Flags of an entry. The values of the first two are also the amounts by which the word
# number advances (see `in_graph_words`).
SPACE = 1  # Ends a word and is dropped.
ALONE = 2  # A separate token: punctuation, Chinese.
DROPPED = 4  # Is dropped without ending a word.
SEVERAL = 8  # Becomes several code points: the value is a row of `expansions`.
MARK = 16  # Becomes or contains a mark that canonical ordering may have to move.
FLAG_BITS = 5

# Properties of a code point.
CASED = 1  # In `unicode_14.CASED`.
IGNORABLE = 2  # Skipped by the final sigma rule: case-ignorable or deleted.
JOINS = 4  # Does not end a run of marks that is sorted canonically.
PROPERTY_BITS = 3  # The bits above: the combining class of a mark that is kept.


@dataclasses.dataclass(frozen=True, kw_only=True)
class PagedTable:
    """One value per code point, in pages of 2 ** PAGE_BITS values."""

    page_starts: np.ndarray  # int32: the index in `values` where each page starts.
    values: np.ndarray  # int32: the distinct pages, concatenated.


@dataclasses.dataclass(frozen=True, kw_only=True)
class CodePointTable:
    """How a tokenizer with given options maps each code point."""

    entries: PagedTable  # Flags, and a difference or a row of `expansions`.
    properties: PagedTable  # For final sigmas and canonical ordering.
    expansions: np.ndarray  # int32: the code points of all expansions, concatenated.
    expansion_splits: np.ndarray  # int32: row r is [splits[r], splits[r + 1]).


@functools.cache
def code_point_table(*, do_lower_case: bool, strip_accents: bool) -> CodePointTable:
    """Returns the `CodePointTable` of a tokenizer with the given options."""
    entries = np.zeros(NUM_CODE_POINTS, np.int32)
    expansions: list[int] = []
    splits = [0]
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
    """Returns the code points whose entry may differ from 0, sorted."""
    codes = set(characters.PUNCTUATION)
    if do_lower_case:
        codes.update(unicode_14.LOWER)
    if strip_accents:
        codes.update(unicode_14.NONSPACING_MARK, unicode_14.DECOMPOSITION)
        codes.update(unicode_14.COMBINING_CLASS)
    return sorted(codes)


def _mapped(text, do_lower_case, strip_accents):
    if do_lower_case:
        # Not `characters.lower`, which would make a lone sigma a final one.
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


def _paged(values: np.ndarray) -> PagedTable:
    pages = values.reshape(-1, 1 << PAGE_BITS)
    starts: dict[bytes, int] = {}
    different: list[np.ndarray] = []
    page_starts = np.zeros(len(pages), np.int32)
    for number, page in enumerate(pages):
        content = page.tobytes()
        if content not in starts:
            starts[content] = len(different) << PAGE_BITS
            different.append(page)
        page_starts[number] = starts[content]
    return PagedTable(page_starts=page_starts, values=np.concatenate(different))
