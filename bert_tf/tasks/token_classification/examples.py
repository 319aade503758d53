"""Reads tagged sentences: column files, plain text, data in memory.

A column file, as in CoNLL, has one word per line and blank lines between sentences:

    -DOCSTART- -X- -X- O

    EU NNP B-NP B-ORG
    rejects VBZ B-VP O
    German JJ B-NP B-MISC

See `schemes` for the tags.
"""

import dataclasses
import itertools
import logging
import os
import re
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.data import in_memory
from bert_tf.data import tables
from bert_tf.fine_tuning import given_data
from bert_tf.tasks.token_classification import schemes
from bert_tf.tokenization import words as words_module

# The columns of a table, and the values of a tuple.
_FORM = ("words", "tags")
logger = logging.getLogger(__name__)

_COMMENT = re.compile("#[ \t]")
_LINE_BREAK = re.compile(r"[\t\r\n]")
DOCUMENT_START = "-DOCSTART-"
# No other white space: a no-break space may be part of a word.
_BLANKS = re.compile("[ \t]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """A line: a word with its tags, the start of a document, a comment, or blank."""

    number: int  # From 1.
    text: str  # Without the line break.
    cells: tuple[str, ...] = ()  # The columns of a word; empty for other lines.
    is_comment: bool = False
    is_broken: bool = False  # The line has the wrong number of columns or an empty one.


def _comments(texts: Sequence[str]) -> frozenset[int]:
    """Returns the indices of comments, which precede the first word of a sentence.

    A comment starts with "#" and a blank, as in CoNLL-U. So can a word that is "#". It
    has as many columns as the other words, and its last one is O, begins like B- or is
    the tag of another word.
    """
    candidates: dict[int, str] = {}
    rows: list[str] = []
    is_start = True
    for index, text in enumerate(texts):
        if text.startswith(DOCUMENT_START) or not text.strip():
            is_start = True
        elif is_start and _COMMENT.match(text):
            candidates[index] = text
        else:
            is_start = False
            rows.append(text)
    if not candidates or not rows:
        return frozenset()
    first, *others = (_cells(text, "\t" in rows[0]) for text in rows)
    tags = {cells[-1] for cells in (first, *others)}
    words = set()
    for index, text in candidates.items():
        cells = _cells(text, "\t" in rows[0])
        has_tag = cells[-1] in tags or schemes.split_tag(cells[-1])[0]
        if has_tag and len(cells) == len(first):
            words.add(index)
    return frozenset(candidates.keys() - words)


def _cells(text: str, has_tabs: bool) -> list[str]:
    if has_tabs:
        return [cell.strip() for cell in text.split("\t")]
    return _BLANKS.split(text.strip(" \t"))


def read_lines(path: str, *, broken_rows: list[str] | None = None) -> Iterator[Line]:
    """Yields the lines of a column file.

    Columns are separated by tabs if the first word's line contains a tab; words can
    then contain spaces. Otherwise columns are separated by spaces. Comments, lines that
    start with "#" and a blank before the first word of a sentence, have no cells.

    Rows with errors, which `broken_rows` collects, are yielded with `is_broken`. None
    raises the errors.

    Raises:
        OSError: the file cannot be read.
        ValueError: a row differs from the first one in its number of columns, has an
            empty column or is not UTF-8 (the message names the line), or the file has
            no words.
    """
    first, has_tabs = None, False
    texts = list(files.read_lines(path))
    comments = _comments(texts)
    for number, text in enumerate(texts, start=1):
        is_comment = number - 1 in comments
        if is_comment or text.startswith(DOCUMENT_START) or not text.strip():
            yield Line(number=number, text=text, is_comment=is_comment)
            continue
        if first is None:
            has_tabs = "\t" in text
        line = Line(number=number, text=text, cells=tuple(_cells(text, has_tabs)))
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sentence:
    """The words of a sentence and their tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None  # None if they are unknown.
    document: int = 0  # Index of the document in the file.
    path: str = ""
    lines: tuple[int, ...] = ()  # Line number of each word, from 1.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of words and tags in a file, counted from 0."""

    word: int = 0
    tag: int | None = None  # None: the last one.


def read_sentences(
    path: str, columns: Columns, *, broken_rows: list[str] | None = None
) -> list[Sentence]:
    """Returns the sentences of a file.

    Args:
        path: the file; see `read_lines`.
        columns: the columns to read. Sentences have no tags if the file lacks the
            column.
        broken_rows: a list that collects the errors of rows, whose sentences are then
            omitted. None raises them.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has a different format or lacks the column of words.
    """
    sentences: list[Sentence] = []
    rows: list[Line] = []
    document = num_comments = 0
    end = Line(number=0, text="")
    for line in itertools.chain(read_lines(path, broken_rows=broken_rows), [end]):
        if line.cells:
            if columns.word >= len(line.cells) and not line.is_broken:
                raise ValueError(
                    f"{path}:{line.number}: expected words in column {columns.word}, "
                    f"counted from 0, but there are only {len(line.cells)} columns; "
                    "set --word_column."
                )
            rows.append(line)
            continue
        if rows and not any(row.is_broken for row in rows):
            tags = None
            if columns.tag is not None and columns.tag < len(rows[0].cells):
                tags = tuple(row.cells[columns.tag] for row in rows)
            sentences.append(
                Sentence(
                    words=tuple(row.cells[columns.word] for row in rows),
                    tags=tags,
                    document=document,
                    path=path,
                    lines=tuple(row.number for row in rows),
                )
            )
        rows = []
        document += line.text.startswith(DOCUMENT_START)
        num_comments += line.is_comment
    if num_comments:
        logger.info("%s: Skipped %d comment lines.", path, num_comments)
    return sentences


def plain_text_words(
    path: str, whole_words: Collection[str]
) -> list[words_module.Words]:
    """Returns the words of each line of a text file; see `words.split_text`."""
    return [
        words_module.split_text(line, whole_words) for line in files.read_lines(path)
    ]


def resolved_columns(path: str, columns: Columns) -> Columns:
    """Returns the columns of a training file, with the default tag column filled in.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file lacks a column, or words and tags are in the same one.
    """
    num_columns = len(next(line.cells for line in read_lines(path) if line.cells))
    tag = num_columns - 1 if columns.tag is None else columns.tag
    tag_place = "another column, the last" if columns.tag is None else f"column {tag}"
    if tag == columns.word or max(tag, columns.word) >= num_columns:
        raise ValueError(
            f"{path} has {num_columns} column{'s' * (num_columns > 1)}; expected words "
            f"in column {columns.word} and tags in {tag_place}, counted from 0 "
            "(--word_column, --tag_column)."
        )
    return dataclasses.replace(columns, tag=tag)


def read_plain_text(
    path: str, *, whole_words: Collection[str] = frozenset(), longest_word: int = 0
) -> list[Sentence]:
    """Returns the sentences of a text file; each one is its own document.

    Args:
        path: the file, in UTF-8. Lines without words are skipped; see
            `words.split_text`.
        whole_words: see `words.split_text`.
        longest_word: see `words.warn_of_undivided`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8 or has no words.
    """
    whole_words = frozenset(whole_words)
    lines = plain_text_words(path, whole_words)
    words_module.warn_of_undivided(
        lines,
        whole_words,
        longest_word,
        advice="Write one word per line into test.txt of --data_dir, with a blank line "
        "after each sentence, and omit --predict_file.",
    )
    sentences = [
        Sentence(words=line.words, document=number, path=path, lines=(number,))
        for number, line in enumerate(lines, start=1)
        if line.words
    ]
    if not sentences:
        raise ValueError(f"{path} has no words; expected one sentence per line.")
    return sentences


def given_sentences(data: Any) -> list[tuple[list[str], list[str]]]:
    """Returns the words and tags of the sentences that a Python caller gives.

    They are in a column file, with the tags in its last column; or in a table in memory
    or in a file, with the lists `words` and `tags` of each sentence.

    Raises:
        OSError: the file cannot be read.
        ValueError: a row lacks a value, words and tags differ in number, or a word is
            empty or contains a tab or a line break.
    """
    if not given_data.is_table_or_in_memory(data):
        path = os.fspath(data)
        sentences = read_sentences(path, resolved_columns(path, Columns()))
        return [(list(one.words), list(one.tags or ())) for one in sentences]
    tagged_words = []
    rows = given_data.rows_of(data, (_FORM,), lists=_FORM)
    for number, row in enumerate(rows, start=1):
        place = f"Sentence {number}"
        words, tags = (_texts(row, name, place) for name in _FORM)
        if len(words) != len(tags) or not words:
            raise ValueError(
                f"{place} has {len(words)} words and {len(tags)} tags; expected the "
                "same number, at least one."
            )
        if len(words) > 1 and words[0].startswith(DOCUMENT_START):
            raise ValueError(
                f"{place} starts with {words[0]!r}, which marks the start of a "
                "document; make it a sentence of its own."
            )
        tagged_words.append((words, tags))
    return tagged_words


def given_file(data: Any) -> bytes:
    """Returns the sentences that a Python caller gives as a column file."""
    if given_data.is_table_or_in_memory(data):
        return column_text(given_sentences(data))
    with files.open_file(data, "rb") as file:
        return file.read()


def column_text(sentences: Sequence[tuple[Sequence[str], Sequence[str]]]) -> bytes:
    """Returns sentences as a column file in UTF-8: a word and its tag per line."""
    blocks = [
        "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True))
        for words, tags in sentences
    ]
    return "\n".join(blocks).encode("utf-8")


def _check(path, line, first):
    if len(line.cells) != len(first.cells):
        advice = " Comments are allowed only before the first word of a sentence."
        raise ValueError(
            f"{path}:{line.number}: expected {len(first.cells)} columns as in line "
            f"{first.number}, got {len(line.cells)}: {line.text[:60]!r}."
            f"{advice if line.text.startswith('#') else ''}"
        )
    if not all(line.cells):
        column = line.cells.index("")
        raise ValueError(
            f"{path}:{line.number}: column {column}, counted from 0, is empty; "
            f"expected a word or a tag: {line.text[:60]!r}."
        )


def _texts(row, name, place):
    if name not in row:
        raise ValueError(f"{place} has no {name!r}; add it.")
    values = in_memory.json_value(row[name], place)
    if not isinstance(values, list):
        raise ValueError(
            f"{place}: {name} is {values!r:.60}; expected a list of texts."
        )
    for value in values:
        if not isinstance(value, str) or not value.strip() or _LINE_BREAK.search(value):
            raise ValueError(
                f"{place}: {name} contains {value!r:.60}; expected texts without tabs "
                "and line breaks."
            )
    return values
