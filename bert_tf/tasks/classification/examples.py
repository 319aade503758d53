"""Examples: texts and their labels, read from tables with named columns."""

import dataclasses
import logging
from collections.abc import Iterable
from collections.abc import Sequence

from bert_tf.data import tables
from bert_tf.tasks.classification import label_kinds

logger = logging.getLogger(__name__)

ID_COLUMN = "id"


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
    kind: str = label_kinds.SINGLE_LABEL  # One of `label_kinds.KINDS`.
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
    """Reads the data of a task. Subclass it to add a task.

    `data_dir` is the folder with the task's files. The sets are called "train", "dev"
    and "test". Further sets of a task have names that begin with "dev_" or "test_".

    Source: DataProcessor of run_classifier.py, 2018.
    """

    # Collects the errors of broken rows, which are skipped. None: a broken row raises.
    broken_rows: list[str] | None = None

    def get_train_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the labeled examples for training."""
        raise NotImplementedError

    def get_dev_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the labeled examples for evaluation."""
        raise NotImplementedError

    def get_test_examples(self, data_dir: str) -> list[InputExample]:
        """Returns the examples to predict. Labels in the file are ignored."""
        raise NotImplementedError

    def get_dev_sets(self, data_dir: str) -> dict[str, list[InputExample]]:
        """Returns the examples of all sets for evaluation, by set name."""
        return {"dev": self.get_dev_examples(data_dir)}

    def get_test_sets(self, data_dir: str) -> dict[str, list[InputExample]]:
        """Returns the examples of all sets to predict, by set name."""
        return {"test": self.get_test_examples(data_dir)}

    def get_submission_files(self) -> dict[str, str]:
        """Returns the name of the GLUE submission file of each set to predict."""
        return {}

    def get_labels(self) -> list[str]:
        """Returns the class names, in the order of the model's outputs."""
        raise NotImplementedError

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the path of each set that is read from a file."""
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

    def get_set_name(self, part: str) -> str | None:
        """Returns the published name of a set that is not read from a file."""
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
        label_kinds.check(text, labels, kind=columns.kind, separator=columns.separator)
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
