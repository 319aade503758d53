"""Writes a table with the answers of a model beside the columns of its input."""

import csv
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files
from bert_tf.data import tables


def write(
    path: str,
    input_path: str,
    answers: Sequence[Mapping[str, str]],
    *,
    names: Sequence[str],
    header: Sequence[str] | None = None,
) -> str:
    """Writes a CSV file with all columns of a table, then those of the answers.

    Spreadsheets open the file as it is: the cells are separated by commas, and a byte
    order mark says that the text is UTF-8. The columns of JSON lines are those of all
    rows, and a row has empty cells for columns that it lacks.

    Args:
        path: of the file to write.
        input_path: the table that the answers are about; see `tables.read_table`.
        answers: one per row, with text by column.
        names: columns of the answers. An input column with the same name is kept; the
            name of the answer then ends in "_2".
        header: as for `tables.read_table`.

    Returns:
        `path`.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the table does not have as many rows as there are answers.
    """
    columns: dict[str, None] = {}
    num_rows = 0
    for row in tables.read_table(input_path, (), header=header):
        columns |= dict.fromkeys(row.cells)
        num_rows += 1
    if num_rows != len(answers):
        raise ValueError(
            f"{input_path} has {num_rows:,} rows, but {len(answers):,} were predicted; "
            "it has changed in the meantime. Predict it again."
        )
    new_names = [_unused(name, columns) for name in names]
    rows = tables.read_table(input_path, (), header=header)
    with files.complete_or_absent(path) as file:
        file.write("\ufeff")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*columns, *new_names])
        for row, answer in zip(rows, answers, strict=True):
            own = [row.cells.get(name) for name in columns]
            writer.writerow([*own, *(answer[name] for name in names)])
    return path


def _unused(name, columns):
    """Returns a name that no column has."""
    number = 2
    unused = name
    while unused in columns:
        unused = f"{name}_{number}"
        number += 1
    return unused
