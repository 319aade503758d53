"""Examples: a start and its endings, read from tables with named columns.

The published data sets are at the end: their files and columns.
"""

import dataclasses
import os
import re
from collections.abc import Iterable

from bert_tf import files
from bert_tf.data import tables

ID_COLUMN = "id"
START_COLUMN = "startphrase"
LIST_COLUMN = "endings"
MIN_ENDINGS = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceExample:
    """The start of a text, and its possible endings, one of them correct."""

    guid: str  # Unique name, such as "dev-7", or the id in the table.
    start: str
    endings: tuple[str, ...]  # Two or more.
    label: int | None = None  # Index of the correct ending. None if unknown.
    place: str | None = dataclasses.field(default=None, compare=False)  # "file:line".


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a table, besides those of the start and the endings."""

    label_column: str | None = "label"  # None if the rows have no labels.
    header: tuple[str, ...] = ()  # All columns of files without a header line.

    def without_label(self) -> "Columns":
        """Returns the columns of a table without labels."""
        return dataclasses.replace(self, label_column=None)


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
        path: of the table; see `tables.read_table`.
        columns: names of its columns.
        set_type: "train", "dev" or "test". Without a column `id`, examples are named
            SET-ROW, counted from 1.
        num_endings: required number of endings. None: that of the first row.
        broken_rows: collects the errors of broken rows, which are skipped. None: a
            broken row raises.

    Raises:
        OSError: the file cannot be read.
        ValueError: a column is missing, a text is empty, the number of endings varies,
            a label is invalid, or an id occurs twice. The message contains file and
            line.
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
                    f"expected {num_endings}; all rows must have the same number."
                )
            tables.check_new_id(example.guid, row.place, place_of)
            examples.append(example)
    return examples


def _rows(path, columns, broken_rows):
    return tables.read_table(
        path,
        list(filter(None, (START_COLUMN, columns.label_column))),
        header=columns.header or None,
        list_columns=(LIST_COLUMN,),
        broken_rows=broken_rows,
    )


def _example(row, columns, default_guid):
    start, endings = row.cells[START_COLUMN], _endings(row)
    texts = {f"the start (column {START_COLUMN})": start}
    texts |= {f"ending {index}": ending for index, ending in enumerate(endings)}
    for what, text in texts.items():
        if text is None or not text.strip():
            raise ValueError(f"{row.place}: {what} is empty; expected text.")
    label = None
    if columns.label_column is not None:
        text = row.cells[columns.label_column].strip()
        label = _label(text, len(endings), row.place)
    return ChoiceExample(
        guid=row.cells.get(ID_COLUMN) or default_guid,
        start=start,
        endings=endings,
        label=label,
        place=row.place,
    )


def _endings(row):
    endings = row.lists.get(LIST_COLUMN)
    if endings is None:
        endings = tuple(row.cells[name] for name in numbered(row.cells))
    if len(endings) < MIN_ENDINGS:
        raise ValueError(
            f"{row.place}: there are {len(endings)} endings; expected {MIN_ENDINGS} or "
            "more, in columns ending0, ending1 and so on, or in JSON lines as a list "
            f"in {LIST_COLUMN}; the columns are {tables.quoted(row.cells)}."
        )
    return endings


def numbered(names: Iterable[str]) -> list[str]:
    """Returns the columns ending0, ending1 and so on, in this order."""
    endings = [name for name in names if re.fullmatch(r"ending\d+", name)]
    return sorted(endings, key=lambda name: int(name.removeprefix("ending")))


def _label(text, num_endings, place):
    if not re.fullmatch(r"\d+", text) or int(text) >= num_endings:
        raise ValueError(
            f"{place}: the label is {text!r}; expected the number of the correct "
            f"ending, from 0 to {num_endings - 1}."
        )
    return int(text)


# Files to train on, to evaluate and to predict, and their columns.
LAYOUTS: dict[str, tuple[tuple[str, str, str], Columns]] = {
    # https://github.com/rowanz/swagaf, folder data. `startphrase` is sent1 plus the
    # beginning of the next sentence, which every ending continues.
    "SWAG": (
        ("train.csv", "val.csv", "test.csv"),
        Columns(),
    ),
    # https://github.com/Websail-NU/CODAH, one fold: tabs between columns, no header.
    "CODAH": (
        ("train.tsv", "dev.tsv", "test.tsv"),
        Columns(
            header=(
                "category",
                START_COLUMN,
                "ending0",
                "ending1",
                "ending2",
                "ending3",
                "label",
            )
        ),
    ),
}


def layout_of(data_dir: str) -> tuple[tuple[str, str, str], Columns]:
    """Returns the layout of the data set in a folder.

    Raises:
        ValueError: the folder contains no file of a known data set.
    """
    for names, columns in LAYOUTS.values():
        if any(files.exists(os.path.join(data_dir, name)) for name in names):
            return names, columns
    raise ValueError(
        f"--data_dir={data_dir} contains no data set; expected train.csv, val.csv, "
        "test.csv (SWAG) or train.tsv, dev.tsv, test.tsv (CODAH). For other files, use "
        "--train_file, --eval_file and --predict_file."
    )
