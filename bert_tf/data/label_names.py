"""Labels in tables: class names and their spellings, missing values, numbers."""

import math
import re
import statistics
import unicodedata
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

# As many different labels that occur once each are no classes.
_MANY_CLASSES = 10
# What pandas, Excel, R, SQL and Python write for a missing value. "none" is not among
# them, because it is a common class name.
MISSING = frozenset(
    (
        *("", "#N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NaN", "nan", "NAN", "NaT"),
        *("NULL", "Null", "null", "None"),
    )
)
# "1e3" and "1_0" are names: float() would read them as 1000 and 10.
_PLAIN_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*?)0*)?")


def is_missing(name: str) -> bool:
    """Returns whether a label stands for a missing value."""
    return name.strip() in MISSING


def key(name: str) -> str:
    """Returns a key that is equal for two spellings of one name.

    It ignores case, white space, invisible characters and the Unicode form. In plain
    numbers, it ignores a plus sign and trailing zeros of the decimals, but not leading
    zeros: "01" and "1" are different codes.

    Example:
        >>> key("Very  Good") == key("very good"), key("1.0") == key("1")
        (True, True)
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    visible = "".join(one for one in text if unicodedata.category(one) != "Cf")
    text = " ".join(visible.split())
    number = _PLAIN_NUMBER.fullmatch(text)
    if number is None:
        return text
    sign, whole, decimals = number.groups()
    signed = sign.replace("+", "") + whole
    return f"{signed}.{decimals}" if decimals else signed


def check_spellings(path: str, counts: Mapping[str, int], advice: str) -> None:
    """Raises ValueError if two names differ only in their spelling.

    Args:
        path: the file, for the message.
        counts: number of occurrences of each name.
        advice: what to do, the end of the message.
    """
    by_key: dict[str, list[str]] = {}
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        by_key.setdefault(key(name), []).append(f"{name!r} ({counts[name]:,})")
    groups = [" and ".join(names) for names in by_key.values() if len(names) > 1]
    if groups:
        raise ValueError(
            f"{path}: labels differ only in their spelling: {'; '.join(groups)}. "
            f"{advice}"
        )


def same_name(name: str, known: Sequence[str]) -> str | None:
    """Returns the known name that `name` is a spelling of, or None."""
    if name in known:
        return name
    return next((other for other in known if key(other) == key(name)), None)


def names_in(text: str, separator: str | None) -> tuple[str, ...]:
    """Returns the class names in a cell, without surrounding white space.

    Without a separator, the whole cell is one name. With one, an empty cell has none.

    Example:
        >>> names_in("rain; wind", ";")
        ('rain', 'wind')
    """
    if separator is None:
        return (text.strip(),)
    names = (name.strip() for name in text.split(separator))
    return tuple(name for name in names if name)


def all_names(cells: Iterable[str], separator: str | None) -> list[str]:
    """Returns the class names in all cells; see `names_in`."""
    return [name for cell in cells for name in names_in(cell, separator)]


def number_in(text: str) -> float:
    """Returns the number in a cell; raises ValueError if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the label {text!r:.60} is not a finite number.")
    return value


def range_of(labels: Iterable[str]) -> str:
    """Returns the range and the mean of numbers, such as "0 to 5, mean 2.7"."""
    values = list(map(number_in, labels))
    return f"{min(values):g} to {max(values):g}, mean {statistics.fmean(values):.3g}"


def check_label(
    text: str, known: Sequence[str], *, kind: str, separator: str | None
) -> None:
    """Checks the label in a cell.

    Args:
        text: contents of the cell.
        known: class names. If empty, all names are accepted.
        kind: one of `heads.LABEL_KINDS`.
        separator: as in `names_in`.

    Raises:
        ValueError: the label is empty, denotes a missing value, is not a number, is an
            unknown class, or contains a class twice.
    """
    if kind == "regression":
        number_in(text)
        return
    if kind == "single_label" and not text.strip():
        raise ValueError("the label is empty.")
    names = names_in(text, separator)
    for name in names:
        if name not in known:
            _check_class(name, known)
    if len(set(names)) != len(names):
        raise ValueError(f"the label {text!r:.60} contains a class twice.")


def _check_class(name, known):
    """Refuses an unknown name that cannot be the name of a class."""
    if is_missing(name):
        raise ValueError(
            f"the label {name!r} stands for a missing value; correct or remove the "
            "row. If it is the name of a class, list all classes in --labels."
        )
    same = same_name(name, known)
    if same is not None:
        raise ValueError(
            f"the label {name!r:.60} is another spelling of {same!r:.60}; correct it."
        )
    if known:
        raise ValueError(f"the label {name!r:.60} is not one of {', '.join(known)}.")


def check_classes(path: str, counts: Mapping[str, int]) -> None:
    """Raises a ValueError if the labels of a file are probably no classes.

    `counts` has how often each label occurs.
    """
    problem = None
    if len(counts) >= _MANY_CLASSES and max(counts.values()) == 1:
        problem = f"each of the {len(counts):,} labels occurs once"
    elif any(map(_is_fraction, counts)) and all(map(is_number, counts)):
        first = min(filter(_is_fraction, counts))
        problem = f"all labels are numbers, such as {first}"
    if problem:
        raise ValueError(
            f"{path}: {problem}; expected classes. Pass --regression to predict "
            "numbers, choose another --label_column, or list the classes in --labels."
        )


def is_number(label: str) -> bool:
    """Returns whether a label is a decimal number."""
    return re.fullmatch(r"[-+]?\d*\.?\d+", label) is not None


def _is_fraction(label):
    return is_number(label) and not float(label).is_integer()
