"""Tables of text: TSV, CSV and JSON lines, row by row, with their line numbers."""

import contextlib
import csv
import dataclasses
import json
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table."""

    place: str  # "file:line", for messages; the line that a quoted row ends on.
    cells: Mapping[str, str]  # Text by the name of its column.
    # Texts by the name of a column of lists; only JSON lines have such.
    lists: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


def read_table(
    path: str,
    columns: Sequence[str],
    *,
    header: Sequence[str] | None = None,
    list_columns: Sequence[str] = (),
    optional_lists: Sequence[str] = (),
    broken_rows: list[str] | None = None,
) -> Iterator[Row]:
    """Yields the rows of a table.

    The name says how to read it: `.tsv` and `.txt` have tabs between cells and no
    quoting at all (as GLUE's files, where a quotation mark is text), `.csv` has commas
    and CSV's quoting, `.jsonl` and `.json` have one JSON object a line. Blank lines at
    the end are no rows.

    Args:
        path: the file; UTF-8, with or without a byte order mark.
        columns: names of the columns that the rows must have; others are read too.
        header: names of all columns of a TSV or CSV file whose first line is a row
            already; None where the first line is the header.
        list_columns: names of further columns that the rows must have, with a list of
            texts in each cell; for JSON lines.
        optional_lists: names of columns with such lists that a row may lack.
        broken_rows: a list for what is wrong with rows, which are then left out; None
            refuses them.

    Raises:
        OSError: the file cannot be read.
        ValueError: another kind of file, no rows, lists in a file that has none, a
            column that is not there, a row with too many or too few cells, text that is
            not UTF-8; the message has file and line.
    """
    suffix = path.rsplit(".", 1)[-1].lower()
    if suffix not in _READERS:
        raise ValueError(
            f"{path}: the name says no known kind of table; expected it to end in "
            f"{', '.join('.' + known for known in _READERS)}."
        )
    lists = [*list_columns, *optional_lists]
    if lists and suffix not in ("jsonl", "json"):
        raise ValueError(
            f"{path}: the column {lists[0]} is to hold lists, which a "
            f".{suffix} file has not; give JSON lines (.jsonl)."
        )
    row = None
    more = {"optional_lists": optional_lists} if optional_lists else {}
    for row in _READERS[suffix](
        path, columns, header, list_columns, broken_rows, **more
    ):
        yield row
    if row is None and not broken_rows:
        raise ValueError(f"{path} has no rows; expected at least one example.")


@contextlib.contextmanager
def row_faults(broken_rows: list[str] | None):
    """Keeps what is wrong with a row, for a reader to go on with the next one.

    Args:
        broken_rows: a list for the message of a ValueError that is raised within, which
            ends it; None lets the error through.
    """
    try:
        yield
    except ValueError as error:
        if broken_rows is None:
            raise
        broken_rows.append(str(error))


def _read_tsv(path, columns, header, list_columns, broken_rows):
    del list_columns  # There are none.
    records = (
        (number, line.split("\t"))
        for number, line in _without_blank_end(files.read_lines(path))
    )
    return _named(path, records, columns, header, broken_rows)


def _read_csv(path, columns, header, list_columns, broken_rows):
    del list_columns  # There are none.
    return _named(path, _csv_records(path), columns, header, broken_rows)


def _csv_records(path):
    lines = _without_blank_end(files.read_lines(path))
    reader = csv.reader((line + "\n" for _, line in lines), strict=True)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{path}:{reader.line_num}: wrong CSV quoting ({error}); put a cell "
                'with a comma or a quotation mark in "…", and write "" for each '
                "quotation mark in it."
            ) from None
        yield reader.line_num, cells or [""]


def _read_json_lines(
    path, columns, header, list_columns, broken_rows, *, optional_lists=()
):
    del header  # Every row names its columns.
    for number, line in _without_blank_end(files.read_lines(path)):
        row = None
        with row_faults(broken_rows):
            place = f"{path}:{number}"
            row = _json_row(place, line, columns, list_columns, optional_lists)
        if row is not None:
            yield row


def _json_row(place, line, columns, list_columns, optional_lists):
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place}: not JSON ({error}).") from None
    if not isinstance(record, dict):
        raise ValueError(
            f"{place}: expected a JSON object with the columns "
            f"{', '.join([*columns, *list_columns])}, got {line[:40]!r}."
        )
    _check_columns(place, [*columns, *list_columns], record)
    cells = {name: _json_text(value) for name, value in record.items()}
    for name in columns:
        if cells[name] is None:
            raise ValueError(
                f"{place}: column {name} is {json.dumps(record[name])[:40]}; "
                "expected text or a number."
            )
    there = [*list_columns, *(name for name in optional_lists if name in record)]
    lists = {name: _json_texts(place, name, record[name]) for name in there}
    return Row(place=place, cells=cells, lists=lists)


def _named(path, records, columns, header, broken_rows):
    """Yields a Row for each (line number, cells), checked against the header."""
    for number, cells in records:
        place = f"{path}:{number}"
        if header is None:
            header = cells
            _check_columns(place, columns, header)
            continue
        if len(cells) != len(header):
            with row_faults(broken_rows):
                raise ValueError(
                    f"{place}: expected {len(header)} columns ({', '.join(header)}), "
                    f"got {len(cells)}."
                )
            continue
        yield Row(place=place, cells=dict(zip(header, cells, strict=True)))


def _check_columns(place, columns, names):
    missing = [name for name in columns if name not in names]
    if missing:
        raise ValueError(
            f"{place}: there is no column {', '.join(missing)}; the columns are "
            f"{', '.join(names)}."
        )


def _json_text(value):
    """Returns a cell's text: numbers and booleans as JSON writes them, else None."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else None


def _json_texts(place, name, value):
    """Returns the texts of a cell that holds a list."""
    texts = [_json_text(item) for item in value] if isinstance(value, list) else [None]
    if None in texts:
        raise ValueError(
            f"{place}: column {name} is {json.dumps(value)[:40]}; expected a list of "
            "texts."
        )
    return tuple(texts)


def _without_blank_end(lines):
    """Yields (line number, line), apart from the blank lines after the last row."""
    blank = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield from blank
            blank = []
            yield number, line
        else:
            blank.append((number, line))


_READERS = {
    "tsv": _read_tsv,
    "txt": _read_tsv,
    "csv": _read_csv,
    "jsonl": _read_json_lines,
    "json": _read_json_lines,
}
