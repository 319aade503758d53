"""The kinds of labels: one class, any number of classes, or a number."""

import math
from collections.abc import Sequence

SINGLE_LABEL = "single_label"
MULTI_LABEL = "multi_label"
REGRESSION = "regression"
KINDS = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)


def names_in(text: str, separator: str | None) -> tuple[str, ...]:
    """Returns the class names in a cell, without surrounding spaces.

    Args:
        text: contents of the cell. It may be empty: the example has no class.
        separator: between two names. None: the whole cell is one name.

    Example:
        >>> names_in("rain; wind", ";")
        ('rain', 'wind')
    """
    if separator is None:
        return (text,)
    names = (name.strip() for name in text.split(separator))
    return tuple(name for name in names if name)


def number_in(text: str) -> float:
    """Returns the number in a cell.

    Raises:
        ValueError: the text is not a finite number.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the label {text!r:.60} is not a finite number.")
    return value


def check(text: str, known: Sequence[str], *, kind: str, separator: str | None) -> None:
    """Checks one label.

    Args:
        text: contents of the cell.
        known: class names. If empty, all names are accepted.
        kind: one of `KINDS`.
        separator: as in `names_in`.

    Raises:
        ValueError: the label is empty, not a number, an unknown class, or contains a
            class twice. The caller adds file and line to the message.
    """
    if kind == REGRESSION:
        number_in(text)
        return
    if kind == SINGLE_LABEL and not text:
        raise ValueError("the label is empty.")
    names = names_in(text, separator)
    unknown = [name for name in names if known and name not in known]
    if unknown:
        raise ValueError(
            f"the label {unknown[0]!r:.60} is not one of {', '.join(known)}."
        )
    if len(set(names)) != len(names):
        raise ValueError(f"the label {text!r:.60} contains a class twice.")
