"""Examples: texts with their classes, from tables with named columns."""

import dataclasses
import functools
from collections.abc import Sequence

from bert_tf.data import tables

ID_COLUMN = "id"


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputExample:
    """One text, or pair of texts, and its class."""

    guid: str  # Names the example: "dev-7", or the row's id.
    text_a: str
    text_b: str | None = None  # None where the task has single texts.
    label: str | None = None  # None where the class is to be found.
    # "file:line", for messages; None where it is not known.
    place: str | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """Which column of a table holds what."""

    text: str = "text"
    text_b: str | None = None  # None where the task has single texts.
    label: str | None = "label"  # None where the rows have no class.

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

    def get_train_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the examples to train on, labelled."""
        raise NotImplementedError

    def get_dev_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the examples to evaluate on, labelled."""
        raise NotImplementedError

    def get_test_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the examples to predict; labels in the file are not read."""
        raise NotImplementedError

    def get_labels(self) -> list[str]:
        """Returns the names of the classes."""
        raise NotImplementedError

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the paths of "train", "dev", "test", where they are files."""
        return {}


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
        return read_examples(path, self._columns, "dev", labels=self.get_labels())

    def get_test_examples(self, data_dir=None):
        """Returns the examples of the file to predict; `data_dir` is not used."""
        path = _given(self._predict_file, "predict_file")
        return read_examples(path, self._columns.without_label(), "test")

    def get_labels(self):
        """Returns the names of the classes.

        Raises:
            ValueError: the training file has fewer than two classes, or there is
                neither such a file nor a list of labels.
        """
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

    @functools.cached_property
    def _train_examples(self):
        path = _given(self._train_file, "train_file")
        return read_examples(path, self._columns, "train", labels=self._given_labels)

    @functools.cached_property
    def _collected_labels(self):
        labels = sorted({example.label for example in self._train_examples})
        if len(labels) < 2:
            raise ValueError(
                f"{self._train_file}: every row has the label {labels[0]!r}; expected "
                "at least two classes."
            )
        return labels


def read_examples(
    path: str,
    columns: Columns,
    set_type: str,
    *,
    labels: Sequence[str] = (),
    header: Sequence[str] | None = None,
) -> list[InputExample]:
    """Returns the examples of a table.

    Args:
        path: the file; see `tables.read_table`.
        columns: which column holds what.
        set_type: "train", "dev" or "test". With the number of the row, the header
            being row 0, it names an example, as in 2018; a column `id` does it better.
        labels: names of the classes; empty allows every label.
        header: names of the columns of a file without a header.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not such a table, or a label is not in the list; the
            message has file and line.
    """
    first_row = 1 if header is None else 0
    allowed = frozenset(labels)
    examples = []
    rows = tables.read_table(path, columns.names(), header=header)
    for number, row in enumerate(rows, start=first_row):
        label = None if columns.label is None else row.cells[columns.label]
        if label is not None:
            _check_label(label, allowed, labels, row.place)
        example = InputExample(
            guid=row.cells.get(ID_COLUMN) or f"{set_type}-{number}",
            text_a=row.cells[columns.text],
            text_b=None if columns.text_b is None else row.cells[columns.text_b],
            label=label,
            place=row.place,
        )
        examples.append(example)
    return examples


def _check_label(label, allowed, labels, place):
    if not label:
        raise ValueError(f"{place}: the label is empty.")
    if allowed and label not in allowed:
        raise ValueError(
            f"{place}: the label {label!r} is not one of {', '.join(labels)}."
        )


def _given(path, flag):
    if path is None:
        raise ValueError(f"--{flag} is not given; name the table to read.")
    return path
