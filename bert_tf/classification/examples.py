"""Examples: texts with their classes, from tables with named columns."""

import dataclasses
import functools
import logging
from collections.abc import Sequence

from bert_tf.classification import label_kinds
from bert_tf.data import tables

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


class TableProcessor(DataProcessor):
    """The user's own tables, by the names of their columns.

    Args:
        train_file: str or None; see `tables.read_table` for the kinds of file.
        eval_file: str or None.
        predict_file: str or None; it needs no label column.
        columns: `Columns`.
        labels: names of the classes; empty for those of the training file, sorted.
    """

    def __init__(
        self,
        *,
        train_file: str | None = None,
        eval_file: str | None = None,
        predict_file: str | None = None,
        columns: Columns = Columns(),
        labels: Sequence[str] = (),
    ):
        self._train_file = train_file
        self._eval_file = eval_file
        self._predict_file = predict_file
        self._columns = columns
        self._given_labels = list(labels)

    def get_train_examples(self, data_dir=None):
        """Returns the examples of the training file; `data_dir` is not used."""
        return list(self._train_examples)

    def get_dev_examples(self, data_dir=None):
        """Returns the examples of the evaluation file; `data_dir` is not used."""
        path = _given(self._eval_file, "eval_file")
        return self._read(path, self._columns, "dev", labels=self.get_labels())

    def get_test_examples(self, data_dir=None):
        """Returns the examples of the file to predict; `data_dir` is not used."""
        path = _given(self._predict_file, "predict_file")
        return self._read(path, self._columns.without_label(), "test")

    def get_labels(self):
        """Returns the names of the classes; none of numbers.

        Raises:
            ValueError: the training file has fewer than two classes, or there is
                neither such a file nor a list of labels.
        """
        if self._columns.kind == label_kinds.REGRESSION:
            return []
        if self._given_labels:
            return list(self._given_labels)
        if self._train_file is None:
            raise ValueError(
                "The names of the classes are not known; give --labels, in the order "
                "of the model's outputs, or --train_file."
            )
        return list(self._collected_labels)

    def get_files(self, data_dir=None):
        """Returns the paths that were given, by "train", "dev", "test"."""
        paths = {
            "train": self._train_file,
            "dev": self._eval_file,
            "test": self._predict_file,
        }
        return {part: path for part, path in paths.items() if path is not None}

    def _read(self, path, columns, set_type, *, labels=()):
        return read_examples(
            path, columns, set_type, labels=labels, broken_rows=self.broken_rows
        )

    @functools.cached_property
    def _train_examples(self):
        path = _given(self._train_file, "train_file")
        return self._read(path, self._columns, "train", labels=self._given_labels)

    @functools.cached_property
    def _collected_labels(self):
        labels = sorted(
            {
                name
                for example in self._train_examples
                for name in label_kinds.names_in(example.label, self._columns.separator)
            }
        )
        if len(labels) < 2:
            if self._columns.kind == label_kinds.MULTI_LABEL or not labels:
                found = f"all labels together name {len(labels)} classes"
            else:
                found = f"every row has the label {labels[0]!r}"
            raise ValueError(
                f"{self._train_file}: {found}; expected at least two classes."
            )
        return labels


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
    examples, place_of_id = [], {}
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


def _given(path, flag):
    if path is None:
        raise ValueError(f"--{flag} is not given; name the table to read.")
    return path
