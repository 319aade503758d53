"""Reads tables of text (TSV, CSV, JSON and Parquet) row by row, with their places."""

import contextlib
import csv
import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files
from bert_tf import json_values

# Python's default, 131,072, is too small for long documents. Without any limit, a
# missing quotation mark could turn the rest of a large file into one cell.
_MAX_CELL_CHARACTERS = 1 << 24


class MissingColumnError(ValueError):
    """A table lacks a required column."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table."""

    # "file:line" or "file, row N", for messages. A quoted row has the line of its end.
    place: str
    cells: Mapping[str, str]  # Text by column name.
    # Texts by the name of a column with lists; only JSON and Parquet have such columns.
    lists: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


def read_table(
    path: str,
    columns: Sequence[str],
    *,
    header: Sequence[str] | None = None,
    list_columns: Sequence[str] = (),
    broken_rows: list[str] | None = None,
) -> Iterator[Row]:
    """Yields the rows of a table.

    The file's extension determines the format. `.tsv` and `.txt` have cells separated
    by tabs and no quoting: in GLUE's files a quotation mark is text. `.csv` has commas
    and CSV quoting. `.jsonl` and `.json` have one JSON object per line, or are an array
    of objects. `.parquet` needs pyarrow. Text may be compressed, with `.gz` at the end
    of the name. Blank lines at the end are ignored.

    White space around the names of columns is removed. A column without a name is
    called "column N", counted from 1. In JSON lines, equal numbers have the same text,
    however they are written: 1 and 1.0 are "1". The texts of true and false are "true"
    and "false". Lists and objects become their JSON text.

    Args:
        path: the file; UTF-8, with or without a byte order mark.
        columns: names of the required columns. The rows contain all other columns too.
        header: names of all columns of a TSV or CSV file without a header line; None
            if the first line is the header.
        list_columns: names of further columns that hold a list of texts in each cell,
            in JSON and Parquet only. A row may lack them.
        broken_rows: a list that collects the error messages of invalid rows, which are
            skipped. None: an invalid row is an error.

    Raises:
        OSError: the file cannot be read.
        ValueError: the extension is unknown, there are no rows, a column is missing or
            occurs twice, a row has too many or too few cells, or the text is not UTF-8.
            The message contains the file and the line.
    """
    suffix = path.lower().removesuffix(".gz").rsplit(".", 1)[-1]
    if suffix in ("jsonl", "ndjson", "json", "parquet"):
        values = _parquet_values(path) if suffix == "parquet" else _json_values(path)
        rows = _json_rows(values, columns, list_columns, broken_rows)
    elif files.is_folder(path):
        raise ValueError(f"{path} is a folder; expected a file.")
    elif suffix not in ("tsv", "txt", "csv") and not files.exists(path):
        raise FileNotFoundError(f"No such file: {path}.")
    elif suffix not in ("tsv", "txt", "csv"):
        raise ValueError(
            f"{path}: unknown file extension; expected one of .tsv, .txt, .csv, "
            ".jsonl, .json, .parquet. Save a spreadsheet as 'CSV UTF-8'."
        )
    elif suffix == "csv":
        rows = _named(path, _csv_records(path), columns, header, broken_rows)
    else:
        lines = _without_blank_end(files.read_lines(path))
        records = ((number, line.split("\t")) for number, line in lines)
        rows = _named(path, records, columns, header, broken_rows)
    row = None
    for row in rows:
        yield row
    if row is None and not broken_rows:
        raise ValueError(f"{path} has no rows; expected at least one example.")


@contextlib.contextmanager
def row_faults(broken_rows: list[str] | None) -> Iterator[None]:
    """Adds the message of a ValueError in the block to a list; None lets it through.

    With a list, a reader can continue with the next row.
    """
    try:
        yield
    except ValueError as error:
        if broken_rows is None:
            raise
        broken_rows.append(str(error))


def check_new_id(row_id: str, place: str, places: dict[str, str]) -> None:
    """Raises a ValueError if the id of a row is in `places`, and adds its place."""
    first = places.setdefault(row_id, place)
    if first != place:
        raise ValueError(
            f"{place}: the id {row_id!r:.60} occurs already in {first}; give each row "
            "a unique id, or remove the column."
        )


def quoted(names: Iterable[str]) -> str:
    """Returns a list of names for a message, in quotation marks."""
    return ", ".join(map(repr, names))


def _csv_records(path):
    lines = _without_blank_end(files.read_lines(path))
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL_CHARACTERS))
    reader = csv.reader((line + "\n" for _, line in lines), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells or [""]
    except csv.Error as error:
        reason = (
            f"wrong CSV quoting ({error}); put a cell with a comma or a quotation mark "
            'in "…", and write "" for each quotation mark in it.'
        )
        if "larger than field limit" in str(error):
            reason = (
                f"a cell has more than {csv.field_size_limit():,} characters; close "
                "the quotation mark at its start, or split the text."
            )
        raise ValueError(f"{path}:{reader.line_num}: {reason}") from None


def _json_rows(values, columns, list_columns, broken_rows):
    for place, value in values:
        with row_faults(broken_rows):
            record = _json_record(place, value, columns)
            yield _json_row(place, record, columns, list_columns)


def _json_values(path):
    """Yields (place, function that parses) for lines, (place, value) for an array."""
    lines = _without_blank_end(files.read_lines(path))
    for number, line in lines:
        if number > 1 or not line.lstrip().startswith("["):
            place = f"{path}:{number}"
            yield place, functools.partial(_parsed, place, line)
            continue
        array = _parsed(path, "\n".join([line, *(line for _, line in lines)]))
        for row, value in enumerate(array, start=1):
            yield f"{path}, row {row}", value


def _parquet_values(path):
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"{path}: reading Parquet needs pyarrow; install it with pip, or save the "
            "table as CSV."
        ) from None
    with files.open_file(path, "rb") as file:
        try:
            batches = parquet.ParquetFile(file).iter_batches()
            values = (value for batch in batches for value in batch.to_pylist())
            for row, value in enumerate(values, start=1):
                yield f"{path}, row {row}", value
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            raise ValueError(f"{path} cannot be read as Parquet: {error}.") from None


def _json_record(place, value, columns):
    """Returns a row's values by column, from a value or a function that parses it."""
    record = value() if callable(value) else value
    if not isinstance(record, dict):
        raise ValueError(
            f"{place}: expected a JSON object with the columns "
            f"{quoted(columns)}, got {str(record)[:40]!r}."
        )
    names = _column_names(place, record)
    _check_columns(place, columns, names)
    return dict(zip(names, record.values(), strict=True))


def _parsed(place, text):
    try:
        return json_values.parse(text, object_pairs_hook=_unique_names)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{place}: not JSON ({error}).") from None
    except ValueError as error:
        raise ValueError(f"{place}: {str(error).removesuffix('.')}.") from None


def _unique_names(pairs):
    """Returns a JSON object. Python's reader keeps the last of two equal names."""
    _check_unique([name for name, _ in pairs])
    return dict(pairs)


def _json_row(place, record, columns, list_columns):
    for name in columns:
        if _json_text(record[name]) is None:
            raise ValueError(
                f"{place}: column {name!r} is {_shown(record[name])}; expected text or "
                "a number."
            )
    cells = {name: _json_cell(value) for name, value in record.items()}
    there = filter(record.__contains__, list_columns)
    lists = {name: _json_texts(place, name, record[name]) for name in there}
    return Row(place=place, cells=cells, lists=lists)


def _named(path, records, columns, header, broken_rows):
    """Yields a Row for each (line number, cells), checked against the header."""
    if header is not None:
        header = _column_names(path, header)
        records = _without_header_line(path, records, columns, header)
    for number, cells in records:
        place = f"{path}:{number}"
        if header is None:
            header = _column_names(place, cells)
            _check_columns(place, columns, header)
            continue
        if len(cells) != len(header):
            with row_faults(broken_rows):
                raise ValueError(
                    f"{place}: expected {len(header)} columns "
                    f"({quoted(header)}), got {len(cells)}."
                )
            continue
        yield Row(place=place, cells=dict(zip(header, cells, strict=True)))


def _without_header_line(path, records, columns, header):
    """Yields the records of a table that has no header line, and refuses one."""
    records = iter(records)
    for number, cells in itertools.islice(records, 1):
        names = dict(zip(header, map(str.strip, cells), strict=False))
        if len(columns) > 1 and all(names.get(column) == column for column in columns):
            raise ValueError(
                f"{path}:{number}: the line names the columns, but the names are "
                "already known from the training data; remove the line."
            )
        yield number, cells
    yield from records


def _json_text(value):
    """Returns text, a finite number or a boolean as text, and None for other values."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None  # NaN is how Python writes a missing value.
        value = int(value) if value.is_integer() else value
    return json.dumps(value) if isinstance(value, int | float) else None


def _shown(value):
    return json.dumps(value, default=str)[:40]


def _json_cell(value):
    """Returns any value as text, and None for null."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return _json_text(value)


def _json_texts(place, name, value):
    """Returns the texts of a cell that contains a list."""
    texts = [_json_text(item) for item in value] if isinstance(value, list) else [None]
    if None in texts:
        raise ValueError(
            f"{place}: column {name!r} is {_shown(value)}; expected a list of texts."
        )
    return tuple(texts)


def _without_blank_end(lines):
    """Yields (line number, line) up to the last line that is not blank."""
    blank: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield from blank
            blank = []
            yield number, line
        else:
            blank.append((number, line))


def _column_names(place: str, cells: Iterable[str]) -> list[str]:
    """Returns the names of a header's columns; one without a name gets a number."""
    names = [
        cell.strip() or f"column {number}" for number, cell in enumerate(cells, start=1)
    ]
    _check_unique(names, prefix=f"{place}: ")
    return names


def _check_unique(names: Sequence[str], *, prefix: str = "") -> None:
    """Raises ValueError, with a prefix, if two columns have the same name."""
    repeated = [name for index, name in enumerate(names) if name in names[:index]]
    if repeated:
        raise ValueError(
            f"{prefix}the column {repeated[0]!r} occurs twice; give each column its "
            f"own name. The columns are {quoted(names)}."
        )


def _check_columns(place: str, columns: Sequence[str], names: Sequence[str]) -> None:
    """Refuses a table that lacks columns."""
    missing = [name for name in columns if name not in names]
    if missing:
        hint = ""
        if near := [name for name in names if name.lower() == missing[0].lower()]:
            hint = f" Did you mean {near[0]!r}?"
        elif len(names) == 1 and (separators := set(names[0]) & set(";,\t")):
            hint = (
                f" The cells seem to be separated by {quoted(sorted(separators))}; "
                "save the table as .csv with commas, or as .tsv with tabs."
            )
        raise MissingColumnError(
            f"{place}: there is no column {quoted(missing)}; the columns are "
            f"{quoted(names)}.{hint}"
        )
