"""Examples: texts with their classes, from tables with named columns."""

import dataclasses
import logging
from collections.abc import Sequence

from bert_tf.data import tables
from bert_tf.tasks.classification import label_kinds

logger = logging.getLogger(__name__)

ID_COLUMN = "id"


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputExample:
    """One text, or pair of texts, and its class."""

    guid: str  # Names the example: "dev-7", or the row's id.
    text_a: str
    text_b: str | None = None  # None where the task has single texts.
    # As the table has it: a class, several, or a number; None where it is to be found.
    label: str | None = None
    # "file:line", for messages; None where it is not known.
    place: str | None = dataclasses.field(default=None, compare=False)
    # What a GLUE submission calls the row; None outside of GLUE's test files.
    index: str | None = dataclasses.field(default=None, compare=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or both."""
        return (self.text_a,) if self.text_b is None else (self.text_a, self.text_b)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """Which column of a table holds what."""

    text: str = "text"
    text_b: str | None = None  # None where the task has single texts.
    label: str | None = "label"  # None where the rows have no class.
    kind: str = label_kinds.SINGLE_LABEL  # What a label is; see `label_kinds`.
    separator: str | None = None  # Between the classes of one cell; None: it has one.
    # GLUE's, of test files: what a submission calls the row. None: own data, whose
    # column `id`, if there is one, names the examples.
    index: str | None = None

    def names(self) -> list[str]:
        """Returns the names of the columns that a table must have."""
        names = (self.text, self.text_b, self.label)
        return [name for name in names if name is not None]

    def without_label(self) -> "Columns":
        """Returns the columns of rows whose class is to be found."""
        return dataclasses.replace(self, label=None)


class DataProcessor:
    """What a task says about its data; subclass it for a new one.

    `data_dir` is the folder of the task's files. Labels are in the order of the
    model's outputs.

    Source: DataProcessor of run_classifier.py, 2018.
    """

    # A list for what is wrong with rows, which are then left out; None refuses them.
    broken_rows: list[str] | None = None

    def get_train_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the examples to train on, labelled."""
        raise NotImplementedError

    def get_dev_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the examples to evaluate on, labelled."""
        raise NotImplementedError

    def get_test_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the examples to predict; labels in the file are not read."""
        raise NotImplementedError

    def get_dev_sets(self, data_dir: str) -> dict[str, list[InputExample]]:
        """Returns all sets to evaluate on: "dev", or names that start with "dev_"."""
        return {"dev": self.get_dev_examples(data_dir)}

    def get_test_sets(self, data_dir: str) -> dict[str, list[InputExample]]:
        """Returns all sets to predict: "test", or names that start with "test_"."""
        return {"test": self.get_test_examples(data_dir)}

    def get_submission_files(self) -> dict[str, str]:
        """Returns the name of GLUE's submission file of each set to predict."""
        return {}

    def get_labels(self) -> list[str]:
        """Returns the names of the classes."""
        raise NotImplementedError

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the paths of "train" and all sets, where they are files."""
        return {}

    def get_train_files(self, data_dir: str) -> list[str]:
        """Returns the paths of all files to train on; most often it is one."""
        paths = self.get_files(data_dir)
        return [paths["train"]] if "train" in paths else []

    def get_languages(self) -> list[str]:
        """Returns the ISO codes of what is trained on; none where not known."""
        return []

    def get_set_name(self, part: str) -> str | None:
        """Returns what "train" or a set is called elsewhere, where it is no file."""
        return None


def read_examples(
    path: str,
    columns: Columns,
    set_type: str,
    *,
    labels: Sequence[str] = (),
    header: Sequence[str] | None = None,
    broken_rows: list[str] | None = None,
) -> list[InputExample]:
    """Returns the examples of a table; logs how many of them have an empty text.

    Args:
        path: the file; see `tables.read_table`.
        columns: which column holds what.
        set_type: "train", "dev" or "test". With the number of the row, the header
            being row 0, it names an example, as in 2018; a column `id` does it better.
        labels: names of the classes; empty allows every label.
        header: names of the columns of a file without a header.
        broken_rows: a list for what is wrong with rows, which are then left out; None
            refuses them.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not such a table, a label is not in the list, or an id
            is there twice; the message has file and line.
    """
    rows = tables.read_table(
        path, columns.names(), header=header, broken_rows=broken_rows
    )
    first = 1 if header is None else 0
    return examples_of(
        rows, columns, set_type, labels=labels, first_row=first, broken_rows=broken_rows
    )


def examples_of(
    rows,
    columns: Columns,
    set_type: str,
    *,
    labels: Sequence[str] = (),
    first_row: int = 0,
    broken_rows: list[str] | None = None,
) -> list[InputExample]:
    """Returns the examples in some `tables.Row`s; else as `read_examples`."""
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
    text = row.cells[columns.label]
    try:
        label_kinds.check(text, labels, kind=columns.kind, separator=columns.separator)
    except ValueError as error:
        raise ValueError(f"{row.place}: {error}") from None
    return text


def _check_new(guid, place_of_id, place):
    first = place_of_id.setdefault(guid, place)
    if first != place:
        raise ValueError(
            f"{place}: the id {guid!r:.60} is that of {first} too; give every row an "
            "id of its own, or leave the column out."
        )


def _warn_of_empty(examples):
    empty = [
        example.place for example in examples if not all(map(str.strip, example.texts))
    ]
    if empty:
        logger.warning("%s: a text is empty (%d in all).", empty[0], len(empty))
