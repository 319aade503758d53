"""Reads what a user passes to `predict`: any iterable, as a list of Python values."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any


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
        ValueError: `inputs` is one text, a table, or not iterable.

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
    return [_as_python(item) for item in inputs]


def total_length(item: Any) -> int:
    """Returns the number of characters in a text or in a sequence of texts."""
    return len(item) if isinstance(item, str) else sum(map(total_length, item))


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
