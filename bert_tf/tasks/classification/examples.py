"""Examples: texts and their labels, read from tables with named columns."""

import dataclasses
import logging
import math
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import in_memory
from bert_tf.data import label_names
from bert_tf.data import tables
from bert_tf.fine_tuning import given_data

logger = logging.getLogger(__name__)

ID_COLUMN = "id"
_LABEL_SEPARATOR = "|"  # Of labels that a Python call gives as lists.


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputExample:
    """One text or pair of texts, and its label.

    Source: InputExample of run_classifier.py, 2018.
    """

    guid: str  # Unique name, such as "dev-7", or the id in the table.
    text_a: str
    text_b: str | None = None  # None if the task has single texts.
    # The cell of the table: a class, several classes, or a number. None if unknown.
    label: str | None = None
    place: str | None = dataclasses.field(default=None, compare=False)  # "file:line".
    # Index of the row in a GLUE submission. Only GLUE's test files have one.
    index: str | None = dataclasses.field(default=None, compare=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or both texts of a pair."""
        return (self.text_a,) if self.text_b is None else (self.text_a, self.text_b)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a table, and the kind of its labels."""

    text: str = "text"
    text_b: str | None = None  # None if the task has single texts.
    label: str | None = "label"  # None if the rows have no labels.
    kind: str = checkpoint_heads.SINGLE_LABEL  # One of `heads.LABEL_KINDS`.
    separator: str | None = None  # Between class names. None: one class per cell.
    # Column of the row index in GLUE's test files. None for your own data, where the
    # optional column `id` names the examples.
    index: str | None = None

    def names(self) -> list[str]:
        """Returns the names of the required columns."""
        names = (self.text, self.text_b, self.label)
        return [name for name in names if name is not None]

    def without_label(self) -> "Columns":
        """Returns the columns of a table without labels."""
        return dataclasses.replace(self, label=None)


class DataProcessor:
    """Reads the data of a task from tables. Subclass it to add a task.

    `data_dir` is the folder with the task's files. The sets are called "train", "dev"
    and "test". Further sets of a task have names that begin with "dev_" or "test_".

    Source: DataProcessor of run_classifier.py, 2018.
    """

    columns: Columns = Columns()  # Of the tables.
    labels: tuple[str, ...] = ()  # In the order of the outputs. Empty for regression.
    header: tuple[str, ...] | None = None  # Of train and dev files without a header.
    task_name: str | None = None  # Determines the scores. None for your own data.
    # Collects the errors of broken rows, which are skipped. None: a broken row raises.
    broken_rows: list[str] | None = None

    def get_train_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the labeled examples for training."""
        return self.read(data_dir, "train")

    def get_dev_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the labeled examples for evaluation."""
        return self.read(data_dir, "dev")

    def get_test_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the examples to predict. Labels in the file are ignored."""
        return self.read(data_dir, "test")

    def get_dev_sets(self, data_dir: str) -> dict[str, list[InputExample]]:
        """Returns the examples of all sets for evaluation, by set name."""
        names = [n for n in self.get_files(data_dir) if n.startswith("dev_")]
        more = {name: self.read(data_dir, name) for name in names}
        return {"dev": self.get_dev_examples(data_dir)} | more

    def get_test_sets(self, data_dir: str) -> dict[str, list[InputExample]]:
        """Returns the examples of all sets to predict, by set name."""
        names = [n for n in self.get_files(data_dir) if n.startswith("test_")]
        more = {name: self.read(data_dir, name) for name in names}
        return {"test": self.get_test_examples(data_dir)} | more

    def read(self, data_dir: str, part: str) -> list[InputExample]:
        """Returns the examples of one set; those of a test set have no labels."""
        is_test = part.startswith("test")
        return read_examples(
            self.get_files(data_dir)[part],
            self.columns.without_label() if is_test else self.columns,
            part,
            labels=() if is_test else self.get_labels(),
            header=None if is_test else self.header,
            broken_rows=self.broken_rows,
        )

    def get_submission_files(self) -> dict[str, str]:
        """Returns the name of the GLUE submission file of each set to predict."""
        return {}

    def get_labels(self) -> list[str]:
        """Returns the class names, in the order of the model's outputs."""
        return list(self.labels)

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the path of each set."""
        return {}

    def get_train_files(self, data_dir: str) -> list[str]:
        """Returns the paths of all training files, usually one."""
        paths = self.get_files(data_dir)
        return [paths["train"]] if "train" in paths else []

    def get_languages(self) -> list[str]:
        """Returns the ISO codes of the training languages, if they are known."""
        return []

    def get_eval_languages(self) -> list[str]:
        """Returns the languages that the task is evaluated in, if it has several."""
        return []


def read_examples(
    path: str,
    columns: Columns,
    set_type: str,
    *,
    labels: Sequence[str] = (),
    header: Sequence[str] | None = None,
    broken_rows: list[str] | None = None,
) -> list[InputExample]:
    """Returns the examples of a table. Logs the number of empty texts.

    Args:
        path: of the table; see `tables.read_table`.
        columns: names of its columns.
        set_type: "train", "dev" or "test". Without a column `id`, examples are named
            SET-ROW as in the release, where the header is row 0.
        labels: class names. If empty, all labels are accepted.
        header: column names of a file without a header line.
        broken_rows: collects the errors of broken rows, which are skipped. None: a
            broken row raises.

    Raises:
        OSError: the file cannot be read.
        ValueError: a column is missing, a label is invalid, or an id occurs twice. The
            message contains file and line.
    """
    rows = tables.read_table(
        path, columns.names(), header=header, broken_rows=broken_rows
    )
    first = 1 if header is None else 0
    return examples_of(
        rows, columns, set_type, labels=labels, first_row=first, broken_rows=broken_rows
    )


def examples_of(
    rows: Iterable[tables.Row],
    columns: Columns,
    set_type: str,
    *,
    labels: Sequence[str] = (),
    first_row: int = 0,
    broken_rows: list[str] | None = None,
) -> list[InputExample]:
    """Returns the examples of the rows of a table. Arguments as in `read_examples`."""
    examples: list[InputExample] = []
    place_of_id: dict[str, str] = {}
    for number, row in enumerate(rows, start=first_row):
        with tables.row_faults(broken_rows):
            guid = None if columns.index else row.cells.get(ID_COLUMN)
            if guid:
                _check_new(guid, place_of_id, row.place)
            example = InputExample(
                guid=guid or f"{set_type}-{number}",
                text_a=row.cells[columns.text],
                text_b=None if columns.text_b is None else row.cells[columns.text_b],
                label=None if columns.label is None else _label(row, columns, labels),
                place=row.place,
                index=columns.index and row.cells.get(columns.index),
            )
            examples.append(example)
    _warn_of_empty(examples)
    return examples


def _label(row, columns, labels):
    text = row.cells[columns.label].strip()
    try:
        check_label(text, labels, kind=columns.kind, separator=columns.separator)
    except ValueError as error:
        raise ValueError(f"{row.place}: {error}") from None
    return text


def _check_new(guid, place_of_id, place):
    first = place_of_id.setdefault(guid, place)
    if first != place:
        raise ValueError(
            f"{place}: the id {guid!r:.60} occurs already in {first}; give each row a "
            "unique id, or remove the column."
        )


def _warn_of_empty(examples):
    empty = [
        example.place for example in examples if not all(map(str.strip, example.texts))
    ]
    if empty:
        logger.warning("%s: a text is empty (%d in total).", empty[0], len(empty))


def names_in(text: str, separator: str | None) -> tuple[str, ...]:
    """Returns the class names in a cell, without surrounding white space.

    Args:
        text: contents of the cell. It may be empty: the example has no class.
        separator: between two names. None: the whole cell is one name.

    Example:
        >>> names_in("rain; wind", ";")
        ('rain', 'wind')
    """
    if separator is None:
        return (text.strip(),)
    names = (name.strip() for name in text.split(separator))
    return tuple(name for name in names if name)


def all_names(cells: Iterable[str], separator: str | None) -> list[str]:
    """Returns the class names in all cells; see `names_in`."""
    return [name for cell in cells for name in names_in(cell, separator)]


def number_in(text: str) -> float:
    """Returns the number in a cell.

    Raises:
        ValueError: the text is not a finite number.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the label {text!r:.60} is not a finite number.")
    return value


def range_of(labels: Iterable[str]) -> str:
    """Returns the range and mean of labels that are numbers: "0 to 5, mean 2.7"."""
    values = np.array([number_in(text) for text in labels])
    return f"{values.min():g} to {values.max():g}, mean {values.mean():.3g}"


def check_label(
    text: str, known: Sequence[str], *, kind: str, separator: str | None
) -> None:
    """Checks one label.

    Args:
        text: contents of the cell.
        known: class names. If empty, all names are accepted.
        kind: one of `heads.LABEL_KINDS`.
        separator: as in `names_in`.

    Raises:
        ValueError: the label is empty, denotes a missing value, is not a number, is an
            unknown class, or contains a class twice. The caller adds file and line to
            the message.
    """
    if kind == checkpoint_heads.REGRESSION:
        number_in(text)
        return
    if kind == checkpoint_heads.SINGLE_LABEL and not text.strip():
        raise ValueError("the label is empty.")
    names = names_in(text, separator)
    for name in names:
        if name not in known:
            _check_new_class(name, known)
    if len(set(names)) != len(names):
        raise ValueError(f"the label {text!r:.60} contains a class twice.")


def _check_new_class(name, known):
    """Raises ValueError if an unknown name cannot be the name of a class."""
    if label_names.is_missing(name):
        raise ValueError(
            f"the label {name!r} stands for a missing value; correct or remove the "
            "row. If it is the name of a class, list all classes in --labels."
        )
    same = label_names.same_name(name, known)
    if same is not None:
        raise ValueError(
            f"the label {name!r:.60} is another spelling of {same!r:.60}; correct it."
        )
    if known:
        raise ValueError(f"the label {name!r:.60} is not one of {', '.join(known)}.")


def file_of(run: Any, data: Any, name: str) -> str:
    """Returns the path of the examples of a Python call; sets the option for pairs.

    Args:
        run: `fine_tune.Run`.
        data: see `fine_tune.classify`.
        name: "train" or "validation".
    """
    text, text_b, label = (
        run.option(f"{column}_column") or column
        for column in ("text", "text_b", "label")
    )
    path = given_data.file_path(data)
    if path is None:
        rows = in_memory.rows_of(data, ((text, label), (text, text_b, label)))
        # If only some rows have a second text, the others are refused below.
        is_pair = any(text_b in row for row in rows)
    else:
        is_pair = text_b in given_data.columns_of_file(path)
    if is_pair:
        run.values["text_b_column"] = text_b
    if path is not None:
        return path
    columns = (text, text_b, label) if is_pair else (text, label)
    content = given_data.json_lines(_with_label_texts(run, rows, label), columns)
    return run.add_file(f"{name}.jsonl", content, trains=name == "train")


def _with_label_texts(run, rows, label):
    """Returns rows whose labels are texts; a list of labels becomes one text."""
    first = in_memory.json_value(rows[0].get(label), f"row 1, {label!r}")
    if isinstance(first, list):
        run.values.setdefault("label_separator", _LABEL_SEPARATOR)
    values = [
        in_memory.json_value(row.get(label), f"row {number}, {label!r}")
        for number, row in enumerate(rows, start=1)
    ]
    if isinstance(first, list):
        _check_no_indicators(values, label)
    labeled = []
    for number, (row, value) in enumerate(zip(rows, values, strict=True), start=1):
        if isinstance(first, list):
            separator = run.values["label_separator"]
            value = _joined_labels(value, separator, f"Row {number}", label)
        text = in_memory.label_text(value)
        labeled.append({**row, label: text} if label in row else row)
    return labeled


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


def _joined_labels(names, separator, place, label):
    if not isinstance(names, list):
        raise ValueError(
            f"{place}: {label} is {names!r:.60}; expected a list of labels, as in "
            "row 1."
        )
    names = [in_memory.label_text(name) for name in names]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"{place}: {label} is {names!r:.60}; expected a list of texts."
        )
    if any(separator in name for name in names):
        raise ValueError(
            f"{place}: a label of {names} contains {separator!r}; pass "
            "label_separator, a text that no label contains."
        )
    return separator.join(names)
