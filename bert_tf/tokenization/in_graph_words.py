"""Texts to words with TensorFlow ops: cleans, splits and lowercases them.

Texts are decoded into code points, and each is mapped by a table.
TensorFlow's own Unicode functions are not used: their results depend on the version of
its ICU library and on the locale, and differ from the release's.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.tokenization import characters

# An entry of a table is an int32. Its lowest bits are flags. The bits above them hold
# either the difference between the mapped code point and the original one, or a row
# number of `CodePointTable.expansions`. Most of the 1,114,112 entries are equal, so
# they are stored as pages, and equal pages are stored once.
NUM_CODE_POINTS = 0x110000
PAGE_BITS = 7  # Measured: the smallest sum of pages and page numbers.

# Flags of an entry. The values of the first two are also the amounts by which the word
# number advances.
SPACE = 1  # Ends a word and is dropped.
ALONE = 2  # A separate token: punctuation, Chinese.
DROPPED = 4  # Is dropped without ending a word.
SEVERAL = 8  # Becomes several code points: the value is a row of `expansions`.
MARK = 16  # Becomes or contains a mark that canonical ordering may have to move.
FLAG_BITS = 5

# Properties of a code point.
CASED = 1  # In `characters.CASED`.
IGNORABLE = 2  # Skipped by the final sigma rule: case-ignorable or deleted.
JOINS = 4  # Does not end a run of marks that is sorted canonically.
PROPERTY_BITS = 3  # The bits above: the combining class of a mark that is kept.


@dataclasses.dataclass(frozen=True, kw_only=True)
class CodePointTable:
    """How a tokenizer with given options maps each code point; all arrays are int32.

    Entries and properties are one value per code point, in pages of 2 ** PAGE_BITS
    values, of which equal ones are stored once.
    """

    entries: Any  # Flags, and a difference or a row of `expansions`.
    entry_pages: Any  # The index in `entries` where each page starts.
    properties: Any  # For final sigmas and canonical ordering.
    property_pages: Any
    expansions: Any  # The code points of all expansions, concatenated.
    expansion_splits: Any  # Row r is [splits[r], splits[r + 1]).


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
    entries, entry_pages = _paged(entries)
    properties, property_pages = _paged(_properties())
    return CodePointTable(
        entries=entries,
        entry_pages=entry_pages,
        properties=properties,
        property_pages=property_pages,
        expansions=np.array(expansions, np.int32),
        expansion_splits=np.array(splits, np.int32),
    )


def _changed_codes(do_lower_case, strip_accents):
    """Returns the code points whose entry may differ from 0, sorted."""
    codes = set(characters.PUNCTUATION)
    if do_lower_case:
        codes.update(characters.LOWER)
    if strip_accents:
        codes.update(characters.NONSPACING_MARK, characters.DECOMPOSITION)
        codes.update(characters.COMBINING_CLASS)
    return sorted(codes)


def _mapped(text, do_lower_case, strip_accents):
    if do_lower_case:
        # Not `characters.lower`, which would make a lone sigma a final one.
        text = text.translate(characters.LOWER)
    return characters.strip_accents(text) if strip_accents else text


def _is_moving_mark(code):
    is_dropped = code in characters.NONSPACING_MARK
    return code in characters.COMBINING_CLASS and not is_dropped


def _properties():
    properties = np.zeros(NUM_CODE_POINTS, np.int32)
    properties[list(characters.CASED)] |= CASED
    properties[list(characters.CASE_IGNORABLE | characters.DELETED)] |= IGNORABLE
    properties[list(characters.DELETED)] |= JOINS
    for code, combining_class in characters.COMBINING_CLASS.items():
        properties[code] |= JOINS
        if _is_moving_mark(code):
            properties[code] |= combining_class << PROPERTY_BITS
    for code, decomposed in characters.DECOMPOSITION.items():
        if all(ord(c) in characters.COMBINING_CLASS for c in decomposed):
            properties[code] |= JOINS
    return properties


def _paged(values):
    """Returns the distinct pages, concatenated, and where each page starts in them."""
    pages = values.reshape(-1, 1 << PAGE_BITS)
    starts: dict[bytes, int] = {}
    page_starts = [
        starts.setdefault(page.tobytes(), len(starts) << PAGE_BITS) for page in pages
    ]
    distinct = np.frombuffer(b"".join(starts), np.int32)
    return distinct, np.array(page_starts, np.int32)


class InGraphWords(tf.Module):
    """Computes the same words as `BasicTokenizer`, with TensorFlow ops.

    Create it outside of graphs, because graphs capture its tables.
    """

    def __init__(self, *, do_lower_case: bool, strip_accents: bool):
        super().__init__()
        self._do_lower_case = do_lower_case
        self._strip_accents = strip_accents
        table = code_point_table(
            do_lower_case=do_lower_case, strip_accents=strip_accents
        )
        self._table = CodePointTable(
            **{name: tf.constant(values) for name, values in vars(table).items()}
        )

    def words(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Returns the words of texts.

        Args:
            strings: tf.string tensor [B] in UTF-8; invalid bytes are dropped.

        Returns:
            int32 tf.RaggedTensor [B, words, characters] of code points.
        """
        # The space separates the first word of each text from the text before it.
        decoded = tf.strings.unicode_decode(
            tf.strings.join([" ", strings]), "UTF-8", errors="ignore"
        )
        codes = decoded.flat_values
        if self._do_lower_case:
            codes = self.with_final_sigmas(codes)
        table = self._table
        entries = _look_up(table.entries, table.entry_pages, codes)
        codes, groups, positions = self._map(codes, entries)
        # A word is a run of code points of one group.
        is_start = tf.concat(
            [tf.ones_like(groups[:1], bool), groups[1:] != groups[:-1]], axis=0
        )
        starts = tf.where(is_start)[:, 0]
        words = tf.RaggedTensor.from_row_starts(codes, starts, validate=False)
        splits = tf.searchsorted(tf.gather(positions, starts), decoded.row_splits)
        return tf.RaggedTensor.from_row_splits(
            words, tf.cast(splits, tf.int64), validate=False
        )

    def _map(self, codes, entries):
        """Maps code points and groups them into words.

        Args:
            codes: int32 [N], the code points of the texts.
            entries: int32 [N], the table entry of each code point.

        Returns:
            codes: int32 [M], without white space and dropped characters.
            groups: int32 [M], ascending, equal for the code points of one word.
            positions: int64 [M], the index in the input of each code point.
        """
        # White space advances the word number by one. A character that is a separate
        # token advances it by two and takes the number in between, which no neighbor
        # can have.
        steps = tf.bitwise.bitwise_and(entries, SPACE | ALONE)
        groups = tf.cumsum(steps) - tf.bitwise.right_shift(steps, 1)
        gone = SPACE | DROPPED
        positions = tf.where(tf.bitwise.bitwise_and(entries, gone) == 0)[:, 0]
        kept = tf.gather(entries, positions)
        values = tf.bitwise.right_shift(kept, FLAG_BITS)
        mapped = tf.gather(codes, positions) + values
        mapped, positions = self._with_expansions(mapped, kept, values, positions)
        if self._strip_accents:
            mapped = self._in_canonical_order(mapped, codes, entries, positions)
        return mapped, tf.gather(groups, positions), positions

    def _with_expansions(self, mapped, entries, values, positions):
        """Replaces code points that expand to several by their expansions."""
        is_several = _flag(entries, SEVERAL) > 0

        def expanded():
            row = tf.where(is_several, values, 0)
            splits = self._table.expansion_splits
            first = tf.gather(splits, row)
            lengths = tf.gather(splits, row + 1) - first
            lengths = tf.where(is_several, lengths, 1)
            within = tf.ragged.range(lengths).flat_values
            several = tf.gather(
                self._table.expansions, tf.repeat(first, lengths) + within
            )
            is_several_here = tf.repeat(is_several, lengths)
            one = tf.repeat(mapped, lengths)
            return (
                tf.where(is_several_here, several, one),
                tf.repeat(positions, lengths),
            )

        return tf.cond(tf.reduce_any(is_several), expanded, lambda: (mapped, positions))

    def with_final_sigmas(self, codes: tf.Tensor) -> tf.Tensor:
        """Replaces capital sigmas that end a word by the final form: int32 [N].

        White space separates words; it is the first code point and separates all texts.
        """
        is_sigma = codes == characters.CAPITAL_SIGMA

        def replaced():
            properties = self._properties(tf.concat([codes, [ord(" ")]], axis=0))
            counts = _flag(properties, IGNORABLE) == 0
            is_cased = _flag(tf.boolean_mask(properties, counts), CASED) > 0
            # A sigma is itself counted, and there is a space at both ends of the text.
            place = tf.boolean_mask(tf.cumsum(tf.cast(counts[:-1], tf.int32)), is_sigma)
            before = tf.gather(is_cased, place - 2)
            after = tf.gather(is_cased, place)
            final = tf.boolean_mask(tf.where(is_sigma), before & ~after)
            updates = tf.fill(tf.shape(final)[:1], ord(characters.FINAL_SIGMA))
            return tf.tensor_scatter_nd_update(codes, final, updates)

        return tf.cond(tf.reduce_any(is_sigma), replaced, lambda: codes)

    def _in_canonical_order(self, mapped, codes, entries, positions):
        """Sorts the remaining marks by combining class within each run of marks."""
        is_mark = _flag(entries, MARK) > 0

        def sorted_marks():
            joins = _flag(self._properties(codes), JOINS) > 0
            runs = tf.cumsum(tf.cast(~joins, tf.int64))
            classes = tf.bitwise.right_shift(self._properties(mapped), PROPERTY_BITS)
            places = tf.where(classes > 0)
            marks = tf.gather_nd(mapped, places)
            run = tf.gather(runs, tf.gather_nd(positions, places))
            key = run * 256 + tf.cast(tf.gather_nd(classes, places), tf.int64)
            order = tf.argsort(key, stable=True)
            return tf.tensor_scatter_nd_update(mapped, places, tf.gather(marks, order))

        return tf.cond(tf.reduce_any(is_mark), sorted_marks, lambda: mapped)

    def _properties(self, codes):
        return _look_up(self._table.properties, self._table.property_pages, codes)


def _look_up(values, page_starts, codes):
    """Looks code points up in the pages of a table."""
    starts = tf.gather(page_starts, tf.bitwise.right_shift(codes, PAGE_BITS))
    within = tf.bitwise.bitwise_and(codes, (1 << PAGE_BITS) - 1)
    return tf.gather(values, starts + within)


def _flag(values, flag):
    """Returns int32 values: 1 where a flag is set, else 0."""
    return tf.cast(tf.bitwise.bitwise_and(values, flag) != 0, tf.int32)
