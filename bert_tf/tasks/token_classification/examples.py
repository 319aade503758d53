"""Examples: sentences of words with their tags, from the files of a folder.

    -DOCSTART- -X- -X- O

    EU NNP B-NP B-ORG
    rejects VBZ B-VP O
    German JJ B-NP B-MISC

See `column_files` for the format, and `schemes` for what the tags may be.
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
    tags: tuple[str, ...] | None = None  # None where they are to be found.
    document: int = 0  # Number of its document in the file.
    lines: tuple[int, ...] = ()  # Number of each word's line, from 1.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """Which column of a file holds what, counted from 0."""

    word: int = 0
    tag: int | None = None  # None: the last one.


def read_sentences(
    path: str, columns: Columns, *, broken_rows: list[str] | None = None
) -> list[Sentence]:
    """Returns the sentences of a file.

    Args:
        path: the file; see `column_files.read_lines`.
        columns: which column holds what. Sentences have no tags where the file has no
            such column.
        broken_rows: a list for what is wrong with rows, whose sentences are then left
            out; None refuses them.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no column file, or has no column of words.
    """
    sentences, rows, document = [], [], 0
    for line in column_files.read_lines(path, broken_rows=broken_rows):
        if line.is_word:
            if columns.word >= len(line.cells) and not line.is_broken:
                raise ValueError(
                    f"{path}:{line.number}: there is no column {columns.word} for the "
                    f"words, counted from 0, but {len(line.cells)} in all; give "
                    "--word_column."
                )
            rows.append(line)
            continue
        sentences += _sentence(rows, columns, document)
        rows = []
        document += line.starts_document
    return sentences + _sentence(rows, columns, document)


def resolved_columns(path: str, columns: Columns) -> Columns:
    """Returns the columns with the number of the tags' one, for a file to train on.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has no such columns, or words and tags would be the same one.
    """
    lines = column_files.read_lines(path)
    num_columns = len(next(line for line in lines if line.is_word).cells)
    tag = num_columns - 1 if columns.tag is None else columns.tag
    if tag == columns.word or max(tag, columns.word) >= num_columns:
        raise ValueError(
            f"{path} has {num_columns} column{'s' * (num_columns > 1)}; expected words "
            f"in column {columns.word} and tags in "
            f"{'another, the last one' if columns.tag is None else f'column {tag}'}, "
            "counted from 0 (--word_column, --tag_column)."
        )
    return dataclasses.replace(columns, tag=tag)


def has_documents(sentences: Sequence[Sentence]) -> bool:
    """Returns whether the sentences stand in marked documents."""
    return any(sentence.document for sentence in sentences)


def check_tags(path: str, sentences: Sequence[Sentence], scheme: str) -> None:
    """Checks that all words have tags, and that these keep to their scheme.

    Args:
        path: the file that the sentences are from, for messages.
        sentences: those of the file.
        scheme: one of `schemes.SCHEMES`.

    Raises:
        ValueError: there is no column of tags, or a tag cannot stand where it does;
            the message has file and line.
    """
    for sentence in sentences:
        if sentence.tags is None:
            raise ValueError(
                f"{path} has no column of tags; expected a word and its tag in a line."
            )
        breach = schemes.breach(sentence.tags, scheme)
        if breach is not None:
            line = sentence.lines[min(breach.index, len(sentence.lines) - 1)]
            raise ValueError(
                f"{path}:{line}: {breach.reason}, so it is not {scheme.upper()}; mend "
                "the tag, or give the right --tag_scheme "
                f"({', '.join(schemes.SCHEMES)})."
            )


def check_known(
    path: str, sentences: Sequence[Sentence], labels: Collection[str]
) -> None:
    """Checks that a model has all tags of some sentences.

    Raises:
        ValueError: a tag is not among the labels; the message has file and line.
    """
    known = frozenset(labels)
    for sentence in sentences:
        for line, tag in zip(sentence.lines, sentence.tags or (), strict=True):
            if tag not in known:
                raise ValueError(
                    f"{path}:{line}: the tag {tag!r} is none of the model's: "
                    f"{', '.join(labels)}; if it is no mistake, give all tags as "
                    "--labels when training."
                )


def _sentence(rows, columns, document):
    """Returns a list of the sentence in some rows, if there is one, and none broken."""
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
