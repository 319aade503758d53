"""Part of `tables`: checks the names of columns and recognizes other delimiters."""

import difflib
import shlex
from collections.abc import Iterable
from collections.abc import Sequence

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_CONVERT = (
    'python -c "import csv, sys; csv.writer(sys.stdout).writerows('
    'csv.reader(sys.stdin, delimiter={!r}))" < {} > converted.csv'
)


class MissingColumnError(ValueError):
    """A table lacks a required column."""


def column_names(place: str, cells: Iterable[str]) -> list[str]:
    """Returns the names of the columns in a header, without surrounding white space.

    Args:
        place: "file:line", for error messages.
        cells: the header. A column without a name is called "column N", from 1.

    Raises:
        ValueError: two columns have the same name.
    """
    names = [
        cell.strip() or f"column {number}" for number, cell in enumerate(cells, start=1)
    ]
    check_unique(names, prefix=f"{place}: ")
    return names


def check_unique(names: Sequence[str], *, prefix: str = "") -> None:
    """Raises ValueError, with a prefix, if two columns have the same name."""
    repeated = [name for index, name in enumerate(names) if name in names[:index]]
    if repeated:
        raise ValueError(
            f"{prefix}the column {repeated[0]!r} occurs twice; give each column its "
            f"own name. The columns are {quoted(names)}."
        )


def check_columns(
    path: str,
    line: int,
    columns: Sequence[str],
    names: Sequence[str],
    *,
    delimiter: str | None = None,
) -> None:
    """Checks that a table has the required columns.

    Args:
        path: of the table.
        line: number of the line with the header.
        columns: names of the required columns.
        names: names of all columns.
        delimiter: between the cells. None: the table has JSON lines.

    Raises:
        MissingColumnError: a column is missing. The message suggests a similar name if
            there is one.
        ValueError: another character seems to separate the cells.
    """
    missing = [name for name in columns if name not in names]
    if not missing:
        return
    place = f"{path}:{line}"
    if delimiter is not None:
        _check_delimiter(path, place, missing, names, delimiter)
    raise MissingColumnError(
        f"{place}: there is no column {quoted(missing)}; the columns are "
        f"{quoted(names)}.{_suggestion(missing, names)}"
    )


def quoted(names: Iterable[str]) -> str:
    """Returns a list of names for a message, in quotation marks."""
    return ", ".join(map(repr, names))


def _check_delimiter(path, place, missing, names, delimiter):
    """Raises ValueError if the header looks as if another delimiter separated it."""
    header = delimiter.join(names)
    wanted = {name.casefold() for name in missing}
    for other, found in _DELIMITERS.items():
        cells = [cell.strip().strip('"').casefold() for cell in header.split(other)]
        looks_separated = len(names) == 1 or wanted.intersection(cells)
        if other == delimiter or len(cells) <= len(names) or not looks_separated:
            continue
        suffix = path.rsplit(".", 1)[-1]
        if other == "," and delimiter == "\t":
            advice = "rename the file to .csv"
        else:
            advice = (
                "save the table as 'CSV UTF-8' with commas, or convert it: "
                f"{_CONVERT.format(other, shlex.quote(path))}"
            )
        raise ValueError(
            f"{place}: the cells are separated by {found}; expected "
            f"{_DELIMITERS[delimiter]} in a .{suffix} file. To read it, {advice}"
        )


def _suggestion(missing, names):
    """Returns a sentence with the names that are most similar to missing ones."""
    by_folded = {name.casefold(): name for name in names}
    similar = []
    for name in missing:
        found = difflib.get_close_matches(name.casefold(), by_folded, n=1)
        similar += [by_folded[folded] for folded in found]
    return f" Did you mean {quoted(similar)}?" if similar else ""
