"""Files in SQuAD's format: their paragraphs, each value checked, with its place."""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping

# Longer contexts are no paragraphs; a file that holds one is not what was meant.
MAX_CONTEXT_CHARACTERS = 100_000
_KINDS = {list: "a list", str: "text", bool: "true or false", int: "a whole number"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A paragraph as it stands in a file."""

    record: object  # What should be an object with `context` and `qas`.
    title: str | None  # Of its article; None where there is none.
    article: int  # Number of its article, from 1.
    number: int  # Its own number in the article, from 1.
    place: str  # "file: article 1 (title), paragraph 2", for messages.


def paragraphs(content, path: str) -> Iterator[Paragraph]:
    """Yields all paragraphs of all articles in order.

    Args:
        content: what JSON made of the file.
        path: its name, for messages.

    Raises:
        ValueError: a list of articles or of paragraphs is missing or is none.
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


def value(record, key: str, kind: type, place: str):
    """Returns the value of a key, of which JSON's kind is known.

    Args:
        record: what should be an object with the key.
        key: its name.
        kind: list, str, bool or int.
        place: where it is, for messages.

    Raises:
        ValueError: the record is no object, lacks the key, or has another kind there.
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"{place}: expected an object with {key}, got {record!r:.60}.")
    if key not in record:
        raise ValueError(f"{place}: there is no {key}; expected SQuAD's format.")
    found = record[key]
    # JSON's true and false are no numbers, though Python's are.
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise ValueError(
            f"{place}: expected {key} to be {_KINDS[kind]}, got {found!r:.60}."
        )
    return found


def question_text(question, place: str) -> str:
    """Returns the text of a question; errors as of `value`, or it is blank."""
    text = value(question, "question", str, place)
    if not text.strip():
        raise ValueError(f"{place}: its question is blank; expected text.")
    return text


def check_context(text: str, place: str) -> None:
    """Raises ValueError for a blank text, or more than `MAX_CONTEXT_CHARACTERS`."""
    if len(text) > MAX_CONTEXT_CHARACTERS:
        raise ValueError(
            f"{place}: its context has {len(text)} characters, at most "
            f"{MAX_CONTEXT_CHARACTERS} are allowed; cut it into paragraphs."
        )
    if not text.strip():
        raise ValueError(f"{place}: its context is blank.")
