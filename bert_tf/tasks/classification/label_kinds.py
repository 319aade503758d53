"""The kinds of labels: one class, any number of classes, or a number."""

import math
from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

from bert_tf.data import label_names

SINGLE_LABEL = "single_label"
MULTI_LABEL = "multi_label"
REGRESSION = "regression"
KINDS = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)


def names_in(text: str, separator: str | None) -> tuple[str, ...]:
    """Returns the class names in a cell, without surrounding white space.

    Args:
        text: contents of the cell. It may be empty: the example has no class.
        separator: between two names. None: the whole cell is one name.

    Example:
        >>> names_in("rain; wind", ";")
        ('rain', 'wind')
    """
    if separator is None:
        return (text.strip(),)
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


def range_of(labels: Iterable[str]) -> str:
    """Returns the range and mean of labels that are numbers: "0 to 5, mean 2.7"."""
    values = np.array([number_in(text) for text in labels])
    return f"{values.min():g} to {values.max():g}, mean {values.mean():.3g}"


def check(text: str, known: Sequence[str], *, kind: str, separator: str | None) -> None:
    """Checks one label.

    Args:
        text: contents of the cell.
        known: class names. If empty, all names are accepted.
        kind: one of `KINDS`.
        separator: as in `names_in`.

    Raises:
        ValueError: the label is empty, denotes a missing value, is not a number, is an
            unknown class, or contains a class twice. The caller adds file and line to
            the message.
    """
    if kind == REGRESSION:
        number_in(text)
        return
    if kind == SINGLE_LABEL and not text.strip():
        raise ValueError("the label is empty.")
    names = names_in(text, separator)
    for name in names:
        if name not in known:
            _check_new(name, known)
    if len(set(names)) != len(names):
        raise ValueError(f"the label {text!r:.60} contains a class twice.")


def _check_new(name, known):
    """Raises ValueError if an unknown name cannot be the name of a class."""
    if label_names.is_missing(name):
        raise ValueError(
            f"the label {name!r} stands for a missing value; correct or remove the "
            "row. If it is the name of a class, list all classes in --labels."
        )
    same = label_names.same_name(name, known)
    if same is not None:
        raise ValueError(
            f"the label {name!r:.60} is another spelling of {same!r:.60}; correct it."
        )
    if known:
        raise ValueError(f"the label {name!r:.60} is not one of {', '.join(known)}.")
