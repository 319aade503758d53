"""Data that a Python caller hands over in memory, as files in the run's folder.

A run records the names and checksums of its data and compares them when it is resumed,
so the data is written to the folder `data` of the run, in a format that the readers of
the task know. The same data gives the same bytes.
"""

import json
import numbers
import os
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf import locks
from bert_tf.checkpoints.release import rotation
from bert_tf.data import in_memory
from bert_tf.data import tables

FOLDER = "data"
CORPUS = "corpus.jsonl"
TABLES = (".csv", ".tsv", ".jsonl")


def file_path(data: Any) -> str | None:
    """Returns the path of data in a file; None if it is in memory."""
    return os.fspath(data) if isinstance(data, str | os.PathLike) else None


def is_table_or_in_memory(data: Any) -> bool:
    """Returns whether data is in memory or in a .csv, .tsv or .jsonl file."""
    path = file_path(data)
    return path is None or path.lower().endswith(TABLES)


def columns_of_file(path: str) -> list[str]:
    """Returns the names of the columns of a table.

    Raises:
        OSError, ValueError: see `tables.read_table`.
    """
    return list(next(tables.read_table(path, [])).cells)


def rows_of(
    data: Any, forms: Sequence[Sequence[str]], *, lists: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Returns the rows of a table, in memory or in a file.

    Args:
        data: see `in_memory.rows_of`; or the path of a .csv, .tsv or .jsonl file.
        forms: the names of the values of a tuple, for each number of values.
        lists: columns of a .jsonl file that may contain lists.

    Raises:
        OSError: the file cannot be read.
        ValueError: the data has another form.
    """
    path = file_path(data)
    if path is None:
        return in_memory.rows_of(data, forms)
    if not path.lower().endswith(".jsonl"):
        lists = ()
    rows = tables.read_table(path, [], optional_lists=lists)
    return [{**row.cells, **row.lists} for row in rows]


def json_lines(
    rows: Sequence[Mapping[str, Any]],
    required: Sequence[str],
    optional: Iterable[str] = ("id",),
) -> bytes:
    """Returns rows as JSON lines; see `in_memory.json_rows`."""
    records = in_memory.json_rows(rows, required, optional)
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    return "".join(lines).encode("utf-8")


def is_share(validation: Any) -> bool:
    """Returns whether `validation` is a share of the training data.

    Raises:
        ValueError: it is a number that is not a share.
    """
    # NumPy's numbers are not all instances of float.
    if isinstance(validation, bool) or not isinstance(validation, numbers.Real):
        return False
    if not 0 < float(validation) <= 0.5:
        raise ValueError(
            f"validation={validation}: expected a share above 0 and at most 0.5, or "
            "examples."
        )
    return True


def write(
    output_dir: str, contents: Mapping[str, bytes], training: Sequence[str]
) -> None:
    """Writes the files of given data, except those that have this content already.

    Args:
        output_dir: folder of the run.
        contents: the content of each file, by its path in the folder `data`.
        training: the paths among them of the training data.

    Raises:
        OSError: a file cannot be written, or another process trains in the folder.
        ValueError: the folder has a run that was trained on other data.
    """
    if not contents:
        return
    with locks.output_folder(output_dir):
        new = [path for path in contents if _content(path) != contents[path]]
        changed = [path for path in new if path in training and files.exists(path)]
        if changed and rotation.latest(output_dir) is not None:
            _refuse(output_dir, changed[0])
        for path in new:
            with files.complete_or_absent(path, "wb") as file:
                file.write(contents[path])


def _refuse(output_dir, path):
    """Raises a ValueError: a file of the training data has changed."""
    if os.path.basename(path) == CORPUS:
        raise ValueError(
            f"{output_dir} contains a run with another corpus ({path}), from which "
            "negatives may have been drawn; choose another output_dir, or search other "
            "passages with bert_tf.load(output_dir).index(file)."
        )
    raise ValueError(
        f"{output_dir} contains a run that was trained on other data ({path}); choose "
        "another output_dir."
    )


def _content(path):
    if not files.exists(path):
        return None
    with files.open_file(path, "rb") as file:
        return file.read()
