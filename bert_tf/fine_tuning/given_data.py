"""Data that a Python caller hands over: inputs of `predict`, and examples to train on.

A run records the names and checksums of its data and compares them when it is resumed,
so examples in memory are written to the folder `data` of the run, in a format that the
readers of the task know. The same data gives the same bytes.
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
from bert_tf.checkpoints.release import bundle
from bert_tf.data import in_memory
from bert_tf.data import tables

FOLDER = "data"
CORPUS = "corpus.jsonl"
TABLES = (".csv", ".tsv", ".jsonl")


def read(inputs: Iterable[Any], expected: str) -> list[Any]:
    """Returns the items of an iterable as texts, and as lists and tuples of texts.

    Args:
        inputs: a list, a generator, a NumPy array, a pandas Series, a
            `tf.data.Dataset` or another iterable. Bytes are decoded as UTF-8, without
            invalid bytes, because that is how TensorFlow represents texts. Items that
            contain no text are returned as they are.
        expected: what the items should be, for error messages: "a list of texts".

    Raises:
        ValueError: `inputs` is one text, a table, or not iterable; or a text contains
            half of a surrogate pair.

    Example:
        >>> read(np.array([["one", "two"]]), "a list of pairs")
        [['one', 'two']]
    """
    if isinstance(inputs, str | bytes):
        raise ValueError(f"Expected {expected}, got one string.")
    kind = type(inputs).__name__
    if in_memory.is_table(inputs):
        raise ValueError(
            f"Expected {expected}, got a {kind}, whose items are the names of its "
            "columns; pass a column, such as table['text'], or several with "
            "zip(table['text'], table['text_b'])."
        )
    if not isinstance(inputs, Iterable) and not hasattr(inputs, "__iter__"):
        raise ValueError(f"Expected {expected}, got a value of type {kind}.")
    items = [_as_python(item) for item in inputs]
    for index, item in enumerate(items):
        if not _is_unicode(item):
            raise ValueError(
                f"Input {index} has half of a surrogate pair, got {item!r:.60}; pass "
                "whole characters."
            )
    return items


def total_length(item: Any) -> int:
    """Returns the number of characters in a text or in a sequence of texts."""
    return len(item) if isinstance(item, str) else sum(map(total_length, item))


def file_path(data: Any) -> str | None:
    """Returns the path of data in a file; None if it is in memory."""
    return os.fspath(data) if isinstance(data, str | os.PathLike) else None


def is_table_or_in_memory(data: Any) -> bool:
    """Returns whether data is in memory or in a .csv, .tsv or .jsonl file."""
    path = file_path(data)
    return path is None or path.lower().endswith(TABLES)


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
    rows = tables.read_table(path, [], list_columns=lists)
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
        if changed and bundle.latest(output_dir) is not None:
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


def _is_unicode(item: Any) -> bool:
    """Returns whether all texts in an item can be encoded; "\\ud800" cannot."""
    if isinstance(item, list | tuple):
        return all(map(_is_unicode, item))
    try:
        return not isinstance(item, str) or item.isascii() or bool(item.encode())
    except UnicodeEncodeError:
        return False


def _as_python(item: Any) -> Any:
    if isinstance(item, str):
        return str(item)  # np.str_ is a subclass.
    if isinstance(item, bytes):
        return item.decode("utf-8", "ignore")
    if isinstance(item, list | tuple):
        return (list if isinstance(item, list) else tuple)(map(_as_python, item))
    for convert in ("numpy", "tolist"):  # Of a tensor; of an array or a Series.
        if hasattr(item, convert):
            return _as_python(getattr(item, convert)())
    return item
