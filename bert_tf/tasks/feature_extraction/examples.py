"""Lines of text: one text each, or two."""

import dataclasses
import re
from collections.abc import Iterator

from bert_tf import files

_PAIR = re.compile(r"^(.*) \|\|\| (.*)$")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextLine:
    """One text, or two that form one sequence."""

    text_a: str
    text_b: str | None = None
    place: str = ""  # "file:line", for error messages.


def read_examples(path: str) -> Iterator[TextLine]:
    """Yields the texts of a file, one per line; an empty line is a text too.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not UTF-8; the message has file and line.

    Source: read_examples of extract_features.py, 2018.
    """
    for number, line in enumerate(files.read_lines(path), start=1):
        text_a, text_b = divided(line)
        yield TextLine(text_a=text_a, text_b=text_b, place=f"{path}:{number}")


def divided(line: str) -> tuple[str, str | None]:
    """Returns a line's text and None, or both texts of `A ||| B`.

    As in 2018, the last ` ||| ` separates them.
    """
    line = line.strip()
    match = _PAIR.match(line)
    return (match[1], match[2]) if match else (line, None)
