"""Column files: a word a line, blank lines between sentences, as CoNLL has them."""

import dataclasses
import re
from collections.abc import Iterator

from bert_tf import files
from bert_tf.data import tables

DOCUMENT_START = "-DOCSTART-"
# Only these: a no-break space may be part of a word.
_BLANKS = re.compile("[ \t]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a file: a word with its tags, a document's start, or nothing."""

    number: int  # From 1.
    text: str  # Without its end.
    cells: tuple[str, ...] = ()  # Columns of a word's line; empty for others.
    starts_document: bool = False
    has_tabs: bool = False  # Whether tabs stand between the columns.
    is_broken: bool = False  # A word's line with other columns than it should have.

    @property
    def is_word(self) -> bool:
        """Whether a word stands in it."""
        return bool(self.cells)

    def with_cell(self, column: int, value: str) -> str:
        """Returns the text with another value in a column, or with one more column."""
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

    Columns have tabs between them where the first word's line has one, and then words
    may have spaces in them; else they have white space between them.

    Args:
        path: the file; UTF-8, with or without a byte order mark.
        broken_rows: a list for what is wrong with rows, which are then marked so; None
            refuses them.

    Raises:
        OSError: the file cannot be read.
        ValueError: a row has other columns than the first one, or an empty one, or
            text that is not UTF-8; the message has file and line. Or the file has no
            words at all.
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
            f"{path} has no words; expected a word and its tag in a line, and a blank "
            "line after each sentence."
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
