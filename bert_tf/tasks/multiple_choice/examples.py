"""Examples: a start and its endings, from tables with named columns."""

import dataclasses
import re
from collections.abc import Sequence

from bert_tf.data import tables

ID_COLUMN = "id"
MIN_ENDINGS = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceExample:
    """A start, and endings of which one goes on best."""

    guid: str  # Names the example: "dev-7", or the row's id.
    start: str
    endings: tuple[str, ...]  # Two or more.
    label: int | None = None  # Index of the right one; None where it is to be found.
    # "file:line", for messages; None where it is of no file.
    place: str | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """Which column of a table holds what."""

    start: str = "startphrase"
    # Columns of one ending each, or one column of JSON lines that holds the list of
    # them; empty: ending0, ending1 and so on, as many as there are.
    endings: tuple[str, ...] = ()
    label: str | None = "label"  # None where the rows have none.
    header: tuple[str, ...] | None = None  # All columns of files without a header line.

    def without_label(self) -> "Columns":
        """Returns the columns of rows whose ending is to be found."""
        return dataclasses.replace(self, label=None)


def read_examples(
    path: str,
    columns: Columns,
    set_type: str,
    *,
    num_endings: int | None = None,
    broken_rows: list[str] | None = None,
) -> list[ChoiceExample]:
    """Returns the examples of a table.

    Args:
        path: the file; see `tables.read_table`.
        columns: which column holds what.
        set_type: "train", "dev" or "test". With the number of the row, counted from 1,
            it names an example; a column `id` does it better.
        num_endings: how many endings every row must have; None: as many as the first.
        broken_rows: a list for what is wrong with rows, which are then left out; None
            refuses them.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not such a table, a text is empty, the number of endings
            varies, a label is no index of an ending, or two rows have one id; the
            message has file and line.
    """
    examples: list[ChoiceExample] = []
    place_of: dict[str, str] = {}
    for number, row in enumerate(_rows(path, columns, broken_rows), start=1):
        with tables.row_faults(broken_rows):
            example = _example(row, columns, f"{set_type}-{number}")
            num_endings = num_endings or len(example.endings)
            if len(example.endings) != num_endings:
                raise ValueError(
                    f"{row.place}: there are {len(example.endings)} endings, but "
                    f"expected {num_endings}, as other rows have; every row needs as "
                    "many."
                )
            first_place = place_of.setdefault(example.guid, row.place)
            if first_place != row.place:
                raise ValueError(
                    f"{row.place}: the id {example.guid!r} is that of {first_place} "
                    "too; every row needs its own."
                )
            examples.append(example)
    return examples


def _rows(path, columns, broken_rows):
    needed = [columns.start] + ([columns.label] if columns.label else [])
    endings, list_columns = columns.endings, ()
    if len(endings) == 1:
        endings, list_columns = (), endings
    return tables.read_table(
        path,
        [*needed, *endings],
        header=columns.header,
        list_columns=list_columns,
        broken_rows=broken_rows,
    )


def _example(row, columns, default_guid):
    start = row.cells[columns.start]
    _check_text(start, f"{row.place}: the start (column {columns.start})")
    endings = _endings(row, columns)
    for index, ending in enumerate(endings):
        _check_text(ending, f"{row.place}: ending {index}")
    label = None
    if columns.label is not None:
        label = _label(row.cells[columns.label], len(endings), row.place)
    return ChoiceExample(
        guid=row.cells.get(ID_COLUMN) or default_guid,
        start=start,
        endings=endings,
        label=label,
        place=row.place,
    )


def _endings(row, columns):
    if len(columns.endings) == 1:
        endings = row.lists[columns.endings[0]]
    else:
        names = columns.endings or _numbered(row.cells)
        endings = tuple(row.cells[name] for name in names)
    if len(endings) < MIN_ENDINGS:
        raise ValueError(
            f"{row.place}: there are {len(endings)} endings; expected {MIN_ENDINGS} or "
            "more, in columns ending0, ending1 and so on, or in those that "
            f"--ending_columns names; the columns are {', '.join(row.cells)}."
        )
    return endings


def _numbered(names) -> Sequence[str]:
    """Returns ending0, ending1 and so on, in this order, as far as there are any."""
    found = [name for name in names if re.fullmatch(r"ending\d+", name)]
    return sorted(found, key=lambda name: int(name.removeprefix("ending")))


def _check_text(text, what):
    if text is None or not text.strip():
        raise ValueError(f"{what} is empty; expected text.")


def _label(text, num_endings, place):
    if not re.fullmatch(r"\d+", text) or int(text) >= num_endings:
        raise ValueError(
            f"{place}: the label is {text!r}; expected the number of the right ending, "
            f"0 to {num_endings - 1}."
        )
    return int(text)
