"""Reads what a user passes to `predict`: any iterable, as a list of Python values."""

import os
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from bert_tf.data import in_memory
from bert_tf.data import tables

# What the calls that embed, fill or score texts expect.
TEXTS = "a list of texts, a table, or the path of a .csv, .tsv or .jsonl file"


def read(inputs: Iterable[Any], expected: str) -> list[Any]:
    """Returns the items of an iterable as texts, and as lists and tuples of texts.

    Args:
        inputs: a list, a generator, a NumPy array, a pandas Series, a
            `tf.data.Dataset` or another iterable. Bytes are decoded as UTF-8, without
            invalid bytes, because that is how TensorFlow represents texts.
        expected: what the items should be, for error messages: "a list of texts".

    Returns:
        A list. Items that contain no text are returned as they are.

    Raises:
        ValueError: `inputs` is one text, a table, or not iterable; or a text contains
            half of a surrogate pair.

    Example:
        >>> read(np.array([["one", "two"]]), "a list of pairs")
        [['one', 'two']]
    """
    if isinstance(inputs, str | bytes):
        raise ValueError(f"Expected {expected}, got one string.")
    kind = type(inputs).__name__
    if isinstance(inputs, Mapping) or hasattr(inputs, "columns"):
        raise ValueError(
            f"Expected {expected}, got a {kind}, whose items are the names of its "
            "columns; pass a column, such as table['text'], or several with "
            "zip(table['text'], table['text_b'])."
        )
    if not isinstance(inputs, Iterable) and not hasattr(inputs, "__iter__"):
        raise ValueError(f"Expected {expected}, got a value of type {kind}.")
    items = [_as_python(item) for item in inputs]
    for index, item in enumerate(items):
        if not _is_unicode(item):
            raise ValueError(
                f"Input {index} has half of a surrogate pair, got {item!r:.60}; pass "
                "whole characters."
            )
    return items


def texts_of(inputs: Any, text_column: str) -> list[Any]:
    """Returns the texts of a table, or other inputs as `read` returns them.

    Args:
        inputs: a data frame, a dictionary of columns, the path of a .csv, .tsv or
            .jsonl file, or what `read` takes.
        text_column: column of a table with the texts.

    Raises:
        OSError: the file cannot be read.
        ValueError: the table lacks the column or has no rows; or as for `read`.
    """
    path = os.fspath(inputs) if isinstance(inputs, str | os.PathLike) else ""
    if path.lower().endswith((".csv", ".tsv", ".jsonl")):
        inputs = [
            row.cells[text_column] for row in tables.read_table(path, [text_column])
        ]
    elif in_memory.is_table(inputs):
        rows = in_memory.json_rows(in_memory.rows_of(inputs, ()), [text_column])
        inputs = [row[text_column] for row in rows]
    return read(inputs, TEXTS)


def total_length(item: Any) -> int:
    """Returns the number of characters in a text or in a sequence of texts."""
    return len(item) if isinstance(item, str) else sum(map(total_length, item))


def _is_unicode(item: Any) -> bool:
    """Returns whether all texts in an item can be encoded; "\\ud800" cannot."""
    if isinstance(item, list | tuple):
        return all(map(_is_unicode, item))
    try:
        return not isinstance(item, str) or item.isascii() or bool(item.encode())
    except UnicodeEncodeError:
        return False


def _as_python(item: Any) -> Any:
    if isinstance(item, str):
        return str(item)  # np.str_ is a subclass.
    if isinstance(item, bytes):
        return item.decode("utf-8", "ignore")
    if isinstance(item, list):
        return [_as_python(part) for part in item]
    if isinstance(item, tuple):
        return tuple(_as_python(part) for part in item)
    if hasattr(item, "numpy"):  # A tensor.
        return _as_python(item.numpy())
    if hasattr(item, "tolist"):  # An array or a Series.
        return _as_python(item.tolist())
    return item
