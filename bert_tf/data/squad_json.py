"""Reads the paragraphs of files in SQuAD's format and checks each value."""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

# A file with a longer context is probably not a SQuAD file.
MAX_CONTEXT_CHARACTERS = 100_000
_KINDS = {list: "a list", str: "text", bool: "true or false", int: "a whole number"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A paragraph as it is in the file."""

    record: object  # Should be an object with `context` and `qas`; not yet checked.
    title: str | None  # Title of its article, if it has one.
    article: int  # Number of its article, from 1.
    number: int  # Its number within the article, from 1.
    place: str  # "file: article 1 (title), paragraph 2", for messages.


def paragraphs(content: Any, path: str) -> Iterator[Paragraph]:
    """Yields all paragraphs of all articles in order.

    Args:
        content: the parsed JSON of the file.
        path: name of the file, for messages.

    Raises:
        ValueError: a list of articles or paragraphs is missing or is not a list.
    """
    for article, record in enumerate(value(content, "data", list, path), start=1):
        place = f"{path}: article {article}"
        title = record.get("title") if isinstance(record, Mapping) else None
        if title:
            place += f" ({title})"
        found = value(record, "paragraphs", list, place)
        for number, paragraph in enumerate(found, start=1):
            yield Paragraph(
                record=paragraph,
                title=title if isinstance(title, str) and title.strip() else None,
                article=article,
                number=number,
                place=f"{place}, paragraph {number}",
            )


def value(record: Any, key: str, kind: type, place: str) -> Any:
    """Returns the value of a key after checking its type.

    Args:
        record: a JSON value that should be an object with the key.
        key: name of the key.
        kind: the expected type: list, str, bool or int.
        place: where the record is, for messages.

    Raises:
        ValueError: the record is not an object, lacks the key, or the type differs.
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"{place}: expected an object with {key}, got {record!r:.60}.")
    if key not in record:
        raise ValueError(f"{place}: {key} is missing; expected SQuAD's format.")
    found = record[key]
    # In Python, unlike JSON, a bool is an int.
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise ValueError(
            f"{place}: expected {key} to be {_KINDS[kind]}, got {found!r:.60}."
        )
    return found


def question_text(question: Any, place: str) -> str:
    """Returns the text of a question; raises a ValueError as `value`, or if blank."""
    text = value(question, "question", str, place)
    if not text.strip():
        raise ValueError(f"{place}: its question is blank; expected text.")
    return text


def check_context(text: str, place: str) -> None:
    """Raises a ValueError if a context is blank, or too long."""
    if len(text) > MAX_CONTEXT_CHARACTERS:
        raise ValueError(
            f"{place}: its context has {len(text)} characters, at most "
            f"{MAX_CONTEXT_CHARACTERS} are allowed; split it into paragraphs."
        )
    if not text.strip():
        raise ValueError(f"{place}: its context is blank.")
