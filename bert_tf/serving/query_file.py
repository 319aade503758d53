"""Reads a file of queries: lines of text, or JSON lines."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

from bert_tf import files

# The inputs of all models; other fields of a JSON line are copied to its answer.
INPUTS = ("text", "text_b", "endings", "question", "context")
# Files in these formats would be read as lines of plain text.
_UNSUPPORTED_EXTENSIONS = (".csv", ".json")


def check(path: str) -> int:
    """Returns the number of queries in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has no query, or queries of different kinds, or its name is that
            of another format.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension in _UNSUPPORTED_EXTENSIONS:
        raise ValueError(
            f"{path}: expected one text per line, or two separated by a tab, or a "
            f".jsonl file; {extension} files are not supported."
        )
    count = 0
    names = None
    for count, query in enumerate(_queries(path), start=1):
        found = [name for name in query if name in INPUTS]
        names = names or found
        if set(found) != set(names):
            raise ValueError(
                f"{path}, line {count}: the query has {' and '.join(found)}; expected "
                f"{' and '.join(names)}, as in line 1."
            )
    if not count:
        raise ValueError(f"{path} is empty; expected one query per line.")
    return count


def batches(path: str, batch_size: int) -> Iterator[list[dict[str, Any]]]:
    """Yields the queries of a file, `batch_size` at a time."""
    queries = _queries(path)
    while batch := list(itertools.islice(queries, batch_size)):
        yield batch


def _queries(path):
    read = _from_json if os.fspath(path).lower().endswith(".jsonl") else _from_columns
    for number, line in enumerate(files.read_lines(path), start=1):
        yield read(line, f"{path}, line {number}")


def _from_columns(line, place):
    columns = line.split("\t")
    if len(columns) > 2:
        raise ValueError(
            f"{place}: expected one text, or two separated by a tab, got "
            f"{len(columns)} columns."
        )
    return dict(zip(("text", "text_b"), columns, strict=False))


def _from_json(line, place):
    query = files.parse_json(line, place, advice="expected one JSON object per line")
    if not isinstance(query, dict) or not set(INPUTS) & set(query):
        raise ValueError(
            f"{place}: expected an object with the model's inputs, such as "
            f'{{"text": "..."}}, got {line[:80]}.'
        )
    for name in set(INPUTS) & set(query):
        value = query[name]
        texts = value if name == "endings" and isinstance(value, list) else [value]
        is_text = name != "endings" or isinstance(value, list)
        if not is_text or not all(isinstance(text, str) for text in texts):
            expected = "a list of texts" if name == "endings" else "a text"
            raise ValueError(f"{place}: {name} must be {expected}, got {value!r:.80}.")
    return query
