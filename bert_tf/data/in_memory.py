"""Data in memory: lists, dictionaries of columns and data frames as rows of a table.

A data frame is any object with `columns` whose columns can be selected by name, such as
those of pandas and polars. No such library is imported.
"""

import collections
import datetime
import decimal
import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

# Types of missing values, besides None and NaN.
_MISSING = ("NAType", "NaTType")
_WRITTEN_AS_TEXT = (datetime.date, datetime.time, decimal.Decimal)


def is_table(data: Any) -> bool:
    """Returns whether data is a data frame or a dictionary of columns."""
    return isinstance(data, Mapping) or hasattr(data, "columns")


def rows_of(data: Any, names: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Returns the rows of data in memory, each as values by column name.

    Args:
        data: one of these:

            * a data frame, or a dictionary of columns;
            * a list, or another iterable, of dictionaries;
            * a list, or another iterable, of tuples;
            * a tuple of columns, each a list, an array or a series.

        names: names of the values of a tuple. If tuples may have different numbers of
            values, the names for each number.

    Raises:
        ValueError: the data has another form, two columns have the same name, columns
            have different lengths, or there are no rows.

    Example:
        >>> rows_of([("Rain.", "wet")], [("text", "label")])
        [{'text': 'Rain.', 'label': 'wet'}]
    """
    if is_table(data):
        rows = _zipped(_columns(data))
    elif isinstance(data, tuple) and data and all(map(_is_column, data)):
        rows = _zipped(dict(zip(_names_of(data, names), map(list, data), strict=True)))
    elif not _has_order(data):
        raise ValueError(
            f"Expected examples as a list, a table or a path, got {data!r:.60}."
        )
    else:
        rows = [_row(number, item, names) for number, item in enumerate(data, start=1)]
    if not rows:
        raise ValueError("The data has no rows; expected at least one example.")
    return rows


def json_rows(
    rows: Sequence[Mapping[str, Any]],
    required: Sequence[str],
    optional: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """Returns the values of some columns as JSON values.

    Args:
        rows: from `rows_of`.
        required: columns that each row must have.
        optional: further columns to keep, where they have a value. Others are left
            out.

    Raises:
        ValueError: a column is missing, or a value is not text, a number or a list.
    """
    chosen = []
    for number, row in enumerate(rows, start=1):
        missing = [name for name in required if name not in row]
        if missing:
            raise ValueError(
                f"Row {number} has no column {missing[0]!r}; its columns are "
                f"{', '.join(map(repr, row))}."
            )
        values = {
            name: json_value(row[name], f"row {number}, {name!r}")
            for name in (*required, *optional)
            if name in row
        }
        chosen.append(
            {n: v for n, v in values.items() if n in required or v is not None}
        )
    return chosen


def json_value(value: Any, place: str) -> Any:
    """Returns a value in memory as a JSON value; None for a missing one.

    Raises:
        ValueError: it is not text, a number, a date, a list, a dictionary, or NumPy's
            form of one; the message has its place.
    """
    if type(value).__name__ in _MISSING:
        return None
    if hasattr(value, "tolist"):  # An array, or a scalar of NumPy.
        value = value.tolist()
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, _WRITTEN_AS_TEXT):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): json_value(item, place) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item, place) for item in value]
    raise ValueError(
        f"{place[0].upper()}{place[1:]}: expected text, a number or a list, got "
        f"{value!r:.60} of type {type(value).__name__}."
    )


def label_text(value: Any) -> Any:
    """Returns a JSON value as the text of a label; other values than numbers unchanged.

    Booleans are written as in Python, and as pandas writes them to a CSV file. Equal
    numbers have the same text, because missing values turn 1 into 1.0 in a data frame.

    Example:
        >>> [label_text(value) for value in ("rain", True, 2, 2.0, 2.5)]
        ['rain', 'True', '2', '2', '2.5']
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | float) else value


def with_label_texts(
    rows: Sequence[Mapping[str, Any]], label: str, separator: str | None
) -> tuple[list[Mapping[str, Any]], bool]:
    """Returns rows whose labels are texts, and whether they were lists of labels.

    Args:
        rows: from `rows_of`.
        label: column of the label, a value or a list of values.
        separator: between the labels of a list in its text; None: lists stay lists.

    Raises:
        ValueError: only some labels are lists, a label of a list contains the
            separator, or the lists are vectors of 0 and 1.
    """
    values = [
        json_value(row.get(label), f"row {number}, {label!r}")
        for number, row in enumerate(rows, start=1)
    ]
    has_lists = separator is not None and isinstance(values[0], list)
    if has_lists:
        _check_no_indicators(values, label)
        values = [
            _joined_labels(value, separator, f"Row {number}: {label}")
            for number, value in enumerate(values, start=1)
        ]
    labeled = [
        {**row, label: label_text(value)} if label in row else row
        for row, value in zip(rows, values, strict=True)
    ]
    return labeled, has_lists


def _check_no_indicators(values, label):
    """Refuses vectors of 0 and 1, whose places stand for classes without names."""
    sizes = {len(one) if isinstance(one, list) else 0 for one in values}
    if len(sizes) != 1 or min(sizes) < 2:
        return
    if all(item in (0, 1) for one in values for item in one):
        raise ValueError(
            f"{label} has vectors of 0 and 1, such as {values[0]!r:.60}; expected a "
            "list with the names of the classes of each text."
        )


def _joined_labels(names, separator, place):
    if not isinstance(names, list):
        raise ValueError(
            f"{place} is {names!r:.60}; expected a list of labels, as in row 1."
        )
    names = [label_text(name) for name in names]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{place} is {names!r:.60}; expected a list of texts.")
    if any(separator in name for name in names):
        raise ValueError(
            f"{place} is {names}, in which a label contains {separator!r}; pass "
            "label_separator, a text that no label contains."
        )
    return separator.join(names)


def _columns(table):
    """Returns the columns of a table as lists by name."""
    names = list(table) if isinstance(table, Mapping) else list(table.columns)
    [(name, count)] = collections.Counter(map(str, names)).most_common(1) or [("", 0)]
    if count > 1:
        raise ValueError(
            f"The data has {count} columns {name!r}; rename or drop all but one."
        )
    columns = {str(name): table[name] for name in names}
    for name, values in columns.items():
        if not _has_order(values) or isinstance(values, Mapping):
            raise ValueError(
                f"Column {name!r} is {values!r:.60}; expected a list with one value "
                "per row."
            )
    return {name: list(values) for name, values in columns.items()}


def _is_column(value):
    """Returns whether a value is a column rather than a row: rows are tuples."""
    return _has_order(value) and not isinstance(value, tuple | Mapping)


def _has_order(value):
    """Returns whether a value has items, in an order that is always the same."""
    # A text is one value. The order of a set differs between processes.
    return isinstance(value, Iterable) and not isinstance(
        value, str | bytes | set | frozenset
    )


def _zipped(columns):
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        described = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise ValueError(f"The columns differ in length: {described}.")
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def _row(number, item, names):
    if isinstance(item, Mapping):
        return {str(name): value for name, value in item.items()}
    if isinstance(item, list | tuple):
        return dict(zip(_names_of(item, names, f"row {number}"), item, strict=True))
    raise ValueError(
        f"Row {number} is {item!r:.60}; expected a dictionary or {_forms(names)}."
    )


def _names_of(values, names, place="the tuple"):
    for known in names:
        if len(known) == len(values):
            return known
    raise ValueError(
        f"{place[0].upper()}{place[1:]} has {len(values)} values; expected "
        f"{_forms(names)}."
    )


def _forms(names):
    return " or ".join(f"({', '.join(known)})" for known in names)
