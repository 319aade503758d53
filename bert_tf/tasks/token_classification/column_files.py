"""Reads column files as in CoNLL: one word per line, blank lines between sentences."""

import dataclasses
import re
from collections.abc import Iterator

from bert_tf import files
from bert_tf.data import tables

DOCUMENT_START = "-DOCSTART-"
# No other white space: a no-break space may be part of a word.
_BLANKS = re.compile("[ \t]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a file: a word with its tags, the start of a document, or blank."""

    number: int  # From 1.
    text: str  # Without the line break.
    cells: tuple[str, ...] = ()  # The columns of a word; empty for other lines.
    starts_document: bool = False
    has_tabs: bool = False  # The columns are separated by tabs.
    is_broken: bool = False  # The line has the wrong number of columns or an empty one.

    @property
    def is_word(self) -> bool:
        """Whether the line contains a word."""
        return bool(self.cells)

    def with_cell(self, column: int, value: str) -> str:
        """Returns the text with a column replaced, or appended if it is missing."""
        if column >= len(self.cells):
            return self.text.rstrip() + ("\t" if self.has_tabs else " ") + value
        if self.has_tabs:
            cells = self.text.split("\t")
            return "\t".join([*cells[:column], value, *cells[column + 1 :]])
        spans = list(re.finditer("[^ \t]+", self.text))
        start, end = spans[column].span()
        return self.text[:start] + value + self.text[end:]


def read_lines(path: str, *, broken_rows: list[str] | None = None) -> Iterator[Line]:
    """Yields the lines of a column file.

    Columns are separated by tabs if the first word's line contains a tab; words can
    then contain spaces. Otherwise columns are separated by spaces.

    Args:
        path: the file, in UTF-8 with or without a byte order mark.
        broken_rows: a list that collects the errors of rows, which are then yielded
            with `is_broken`. None raises them.

    Raises:
        OSError: the file cannot be read.
        ValueError: a row differs from the first one in its number of columns, has an
            empty column or is not UTF-8 (the message names the line), or the file has
            no words.
    """
    first = None
    for number, text in enumerate(files.read_lines(path), start=1):
        if text.startswith(DOCUMENT_START):
            yield Line(number=number, text=text, starts_document=True)
        elif not text.strip():
            yield Line(number=number, text=text)
        else:
            has_tabs = "\t" in text if first is None else first.has_tabs
            cells = _cells(text, has_tabs=has_tabs)
            line = Line(number=number, text=text, cells=cells, has_tabs=has_tabs)
            first = first or line
            is_broken = True
            with tables.row_faults(broken_rows):
                _check(path, line, first)
                is_broken = False
            yield dataclasses.replace(line, is_broken=True) if is_broken else line
    if first is None:
        raise ValueError(
            f"{path} has no words; expected one word with its tag per line, and a "
            "blank line after each sentence."
        )


def _cells(text, *, has_tabs):
    if has_tabs:
        return tuple(cell.strip() for cell in text.split("\t"))
    return tuple(_BLANKS.split(text.strip(" \t")))


def _check(path, line, first):
    if len(line.cells) != len(first.cells):
        raise ValueError(
            f"{path}:{line.number}: expected {len(first.cells)} columns as in line "
            f"{first.number}, got {len(line.cells)}: {line.text[:60]!r}."
        )
    if not all(line.cells):
        column = line.cells.index("")
        raise ValueError(
            f"{path}:{line.number}: column {column}, counted from 0, is empty; "
            f"expected a word or a tag: {line.text[:60]!r}."
        )
