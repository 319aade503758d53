"""Class names in tables: missing values, and different spellings of one class."""

import re
import unicodedata
from collections.abc import Mapping
from collections.abc import Sequence

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
        by_key.setdefault(key(name), []).append(name)
    groups = [
        " and ".join(f"{name!r} ({counts[name]:,})" for name in names)
        for names in by_key.values()
        if len(names) > 1
    ]
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
