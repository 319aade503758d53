"""Reads examples from column files: sentences of words and their tags.

    -DOCSTART- -X- -X- O

    EU NNP B-NP B-ORG
    rejects VBZ B-VP O
    German JJ B-NP B-MISC

See `column_files` for the format and `schemes` for the tags.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Sequence

from bert_tf.tasks.token_classification import column_files
from bert_tf.tasks.token_classification import schemes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sentence:
    """The words of a sentence and their tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None  # None if they are unknown.
    document: int = 0  # Index of the document in the file.
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
        path: the file; see `column_files.read_lines`.
        columns: the columns to read. Sentences have no tags if the file lacks the
            column.
        broken_rows: a list that collects the errors of rows, whose sentences are then
            omitted. None raises them.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has a different format or lacks the column of words.
    """
    sentences: list[Sentence] = []
    rows: list[column_files.Line] = []
    document = 0
    for line in column_files.read_lines(path, broken_rows=broken_rows):
        if line.is_word:
            if columns.word >= len(line.cells) and not line.is_broken:
                raise ValueError(
                    f"{path}:{line.number}: expected words in column {columns.word}, "
                    f"counted from 0, but there are only {len(line.cells)} columns; "
                    "set --word_column."
                )
            rows.append(line)
            continue
        sentences += _sentence(rows, columns, document)
        rows = []
        document += line.starts_document
    return sentences + _sentence(rows, columns, document)


def resolved_columns(path: str, columns: Columns) -> Columns:
    """Returns the columns of a training file, with the default tag column filled in.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file lacks a column, or words and tags are in the same one.
    """
    lines = column_files.read_lines(path)
    num_columns = len(next(line for line in lines if line.is_word).cells)
    tag = num_columns - 1 if columns.tag is None else columns.tag
    tag_place = "another column, the last" if columns.tag is None else f"column {tag}"
    if tag == columns.word or max(tag, columns.word) >= num_columns:
        raise ValueError(
            f"{path} has {num_columns} column{'s' * (num_columns > 1)}; expected words "
            f"in column {columns.word} and tags in {tag_place}, counted from 0 "
            "(--word_column, --tag_column)."
        )
    return dataclasses.replace(columns, tag=tag)


def has_documents(sentences: Sequence[Sentence]) -> bool:
    """Returns whether the file marks the starts of documents."""
    return any(sentence.document for sentence in sentences)


def check_tags(path: str, sentences: Sequence[Sentence], scheme: str) -> None:
    """Checks that all words have tags and that the tags follow their scheme.

    Args:
        path: the file, for error messages.
        sentences: the sentences of the file.
        scheme: one of `schemes.SCHEMES`.

    Raises:
        ValueError: there is no column of tags, or a tag violates the scheme (the
            message names the line).
    """
    for sentence in sentences:
        if sentence.tags is None:
            raise ValueError(
                f"{path} has no column of tags; expected one word with its tag per "
                "line."
            )
        breach = schemes.breach(sentence.tags, scheme)
        if breach is not None:
            line = sentence.lines[min(breach.index, len(sentence.lines) - 1)]
            raise ValueError(
                f"{path}:{line}: {breach.reason}, so the tags are not "
                f"{scheme.upper()}; correct the tag, or set --tag_scheme "
                f"({', '.join(schemes.SCHEMES)})."
            )


def check_known(
    path: str, sentences: Sequence[Sentence], labels: Collection[str]
) -> None:
    """Checks that the tags of sentences are among those of a model.

    Raises:
        ValueError: a tag is not among the labels; the message names the line.
    """
    known = frozenset(labels)
    for sentence in sentences:
        for line, tag in zip(sentence.lines, sentence.tags or (), strict=True):
            if tag not in known:
                raise ValueError(
                    f"{path}:{line}: the tag {tag!r} is not one of the model's tags "
                    f"{', '.join(labels)}; correct it, or train with --labels that "
                    "list all tags."
                )


def _sentence(rows, columns, document):
    """Returns [the sentence], or [] if there are no rows or one is broken."""
    if not rows or any(row.is_broken for row in rows):
        return []
    tags = None
    if columns.tag is not None and columns.tag < len(rows[0].cells):
        tags = tuple(row.cells[columns.tag] for row in rows)
    sentence = Sentence(
        words=tuple(row.cells[columns.word] for row in rows),
        tags=tags,
        document=document,
        lines=tuple(row.number for row in rows),
    )
    return [sentence]
