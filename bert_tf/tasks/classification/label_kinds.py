"""What a label may be: one class, any number of classes, or a number."""

import math
from collections.abc import Sequence

SINGLE_LABEL = "single_label"
MULTI_LABEL = "multi_label"
REGRESSION = "regression"
KINDS = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)


def names_in(text: str, separator: str | None) -> tuple[str, ...]:
    """Returns the classes that a cell names, without the spaces around them.

    Args:
        text: what the cell holds; empty where the example has none of the classes.
        separator: what stands between names; None: the cell is one name.

    Example:
        >>> names_in("rain; wind", ";")
        ('rain', 'wind')
    """
    if separator is None:
        return (text,)
    names = (name.strip() for name in text.split(separator))
    return tuple(name for name in names if name)


def number_in(text: str) -> float:
    """Returns the number that a cell holds.

    Raises:
        ValueError: it is none, or not finite.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the label {text!r:.60} is not a number.")
    return value


def check(text: str, known: Sequence[str], *, kind: str, separator: str | None) -> None:
    """Checks one label.

    Args:
        text: what the cell holds.
        known: names of the classes; empty where every name will do.
        kind: one of `KINDS`.
        separator: as for `names_in`.

    Raises:
        ValueError: a number is expected and there is none, the label is empty, names a
            class that is not known, or one class twice; the message has no place yet.
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
        raise ValueError(f"the label {text!r:.60} names a class twice.")
