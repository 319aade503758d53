"""Checks of values that were read from JSON, and numbers that JSON does not have."""

import json
import math
import types
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

# What `unexpected` returns for a value that is not there.
MISSING = "nothing"


def unexpected(value: Any, shape: Any, place: str = "") -> tuple[str, Any] | None:
    """Returns the place and value of the first part that does not have its shape.

    Args:
        value: read from JSON.
        shape: one of these:
            a type such as `str` or `int | None`; a bool is not an int;
            a function that returns whether it accepts a value;
            `[shape]`: a list of such items;
            `{"name": shape, "name?": shape, str: shape}`: an object; names with "?" may
            be missing, and `str` stands for all names that are not listed;
            `(shape, None)`: alternatives, of which None is null.
        place: of the value in the file.

    Returns:
        None if the whole value has the shape.

    Example:
        >>> unexpected({"labels": ["a", 7]}, {"labels": [str]})
        ('labels[1]', 7)
    """
    if isinstance(shape, tuple):
        mismatches = [unexpected(value, one, place) for one in shape]
        return None if None in mismatches else mismatches[-1]
    if isinstance(shape, list | dict):
        if not isinstance(value, type(shape)):
            return place, value
        parts = _parts(value, shape, place)
        return next(filter(None, (unexpected(*part) for part in parts)), None)
    return None if _is_accepted(value, shape) else (place, value)


def _parts(value: Any, shape: Any, place: str) -> Iterator[tuple[Any, Any, str]]:
    """Yields (value, shape, place) of the items of a list or an object."""
    if isinstance(shape, list):
        yield from ((part, shape[0], f"{place}[{i}]") for i, part in enumerate(value))
        return
    shapes = {str(name).removesuffix("?"): part for name, part in shape.items()}
    prefix = f"{place}." if place else ""
    for name, part in value.items():
        if name in shapes or str in shape:
            yield part, shapes.get(name, shape.get(str)), f"{prefix}{name}"
    for name in shape:
        if name is not str and not name.endswith("?") and name not in value:
            yield MISSING, lambda _: False, f"{prefix}{name}"


def _is_accepted(value: Any, shape: Any) -> bool:
    if shape is None:
        return value is None
    if not isinstance(shape, type | types.UnionType):
        return shape(value)
    if isinstance(value, bool):  # In Python, unlike JSON, a bool is an int.
        return bool in (shape, *getattr(shape, "__args__", ()))
    return isinstance(value, shape)


def parse(text: str | bytes, **arguments: Any) -> Any:
    """Returns the value of a JSON text, as `json.loads` with the same arguments does.

    Raises:
        RecursionError: it is nested too deeply.
        ValueError: it is not JSON, or a text in it has half of a surrogate pair, which
            is no character and cannot be written as UTF-8.
    """
    value = json.loads(text, **arguments)
    if r"\u" in str(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            half = ord(error.object[error.start])
            raise ValueError(
                f"\\u{half:04x} is half of a surrogate pair; write both halves, or the "
                "character itself"
            ) from None
    return value


def with_null(value: Any) -> Any:
    """Returns a value with null in place of NaN and infinity, which JSON lacks."""
    if isinstance(value, Mapping):
        return {name: with_null(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [with_null(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def nan_if_null(number: float | None) -> float:
    """Returns a number that `with_null` may have replaced."""
    return math.nan if number is None else number
