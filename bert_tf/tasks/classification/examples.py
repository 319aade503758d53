"""Examples: texts and their labels, read from tables with named columns."""

import collections
import dataclasses
import functools
import itertools
import logging
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import in_memory
from bert_tf.data import label_names
from bert_tf.data import tables
from bert_tf.data import text_checks
from bert_tf.fine_tuning import given_data

logger = logging.getLogger(__name__)

ID_COLUMN = "id"
TEXT_B = "text_b"  # Default column of the second texts in Python calls.
_LABEL_SEPARATOR = "|"  # Of labels that a Python call gives as lists.
# All runs hold out the same examples, whatever their random_seed, so that their scores
# can be compared.
_HOLD_OUT_SEED = 12345


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

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or both texts of a pair."""
        return (self.text_a,) if self.text_b is None else (self.text_a, self.text_b)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a table, and the kind of its labels."""

    text_column: str = "text"
    text_b_column: str | None = None  # None if the task has single texts.
    label_column: str | None = "label"  # None: no labels.
    label_kind: str = checkpoint_heads.SINGLE_LABEL  # One of `heads.LABEL_KINDS`.
    label_separator: str | None = None  # Between class names. None: one class per cell.
    # Optional column with names of the examples. None: they are numbered, as GLUE's.
    id_column: str | None = ID_COLUMN
    # All columns of files without a header line. GLUE's test files have one.
    header: tuple[str, ...] | None = None

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The name of the text's column, or of those of both texts of a pair."""
        return tuple(filter(None, (self.text_column, self.text_b_column)))

    def names(self) -> list[str]:
        """Returns the names of the required columns."""
        return [*filter(None, (*self.text_columns, self.label_column))]

    def without_label(self) -> "Columns":
        """Returns the columns of a table without labels."""
        return dataclasses.replace(self, label_column=None, header=None)


class DataProcessor:
    """Reads the data of a task from tables. Subclass it to add a task.

    `data_dir` is the folder with the task's files. The sets are called "train", "dev"
    and "test". Further sets of a task have names that begin with "dev_" or "test_".

    A task overrides `get_files` and, if its files are not plain tables, `read`, which
    the `get_..._examples` methods of the release call.

    Source: DataProcessor of run_classifier.py, 2018.
    """

    columns: Columns = Columns()  # Of the tables.
    labels: tuple[str, ...] = ()  # In the order of the outputs; () for a number.
    task_name: str | None = None  # Determines the scores. None for your own data.
    languages: tuple[str, ...] = ()  # ISO codes of the training texts, if known.
    # Of the sets to evaluate and to predict, if the task has several languages.
    eval_languages: tuple[str, ...] = ()
    # Collects the errors of broken rows, which are skipped. None: a broken row raises.
    broken_rows: list[str] | None = None

    def get_train_examples(self, data_dir: str = "") -> list[InputExample]:
        """Returns the labeled examples for training."""
        return self.read(data_dir, "train")

    def get_dev_examples(self, data_dir: str = "") -> list[InputExample]:
        """Returns the labeled examples for evaluation."""
        return self.read(data_dir, "dev")

    def get_test_examples(self, data_dir: str = "") -> list[InputExample]:
        """Returns the examples to predict. Labels in the file are ignored."""
        return self.read(data_dir, "test")

    def read_sets(self, data_dir: str, kind: str) -> dict[str, list[InputExample]]:
        """Returns the examples of "train", of all "dev" or of all "test" sets."""
        names = [name for name in self.get_files(data_dir) if name.startswith(kind)]
        return {name: self.read(data_dir, name) for name in names}

    def read(self, data_dir: str, part: str) -> list[InputExample]:
        """Returns the examples of one set; those of a test set have no labels."""
        columns = self.columns
        if part.startswith("test"):
            columns = columns.without_label()
        [path] = self.get_files(data_dir)[part]
        return read_examples(
            path,
            columns,
            part,
            labels=self.get_labels(),
            broken_rows=self.broken_rows,
        )

    def get_labels(self) -> list[str]:
        """Returns the class names, in the order of the model's outputs."""
        return list(self.labels)

    def get_files(self, data_dir: str) -> dict[str, tuple[str, ...]]:
        """Returns the paths of each set, usually one."""
        return {}

    def get_held_out_fingerprint(self) -> str | None:
        """Returns the checksum of the texts that are held out; None if none are."""
        return None


class TableProcessor(DataProcessor):
    """Reads the user's own tables. `data_dir` is not used.

    Args:
        paths: of the tables "train", "dev" and "test", those that there are. See
            `tables.read_table` for the file formats.
        columns: names of the columns. The test set needs no label column.
        labels: class names. Default: the classes in the training file, sorted.
        validation_split: share of the training file that serves as "dev". 0: none.
    """

    def __init__(
        self,
        paths: Mapping[str, str | None],
        *,
        columns: Columns = Columns(),
        labels: Sequence[str] = (),
        validation_split: float = 0.0,
    ):
        self._paths = {part: path for part, path in paths.items() if path is not None}
        if validation_split and "train" in self._paths:
            self._paths["dev"] = self._paths["train"]
        self.columns = columns
        self._known_labels = list(labels)
        self._validation_split = validation_split

    def read(self, data_dir: str, part: str) -> list[InputExample]:
        """Returns the examples of a set; "train" without those that are held out."""
        if part == "test" or (part == "dev" and not self._validation_split):
            return self._read(part, () if part == "test" else self.get_labels())
        examples = self._train_examples
        if not self._validation_split:
            return list(examples)
        is_held_out = self._is_held_out
        chosen = is_held_out if part == "dev" else ~is_held_out
        return list(itertools.compress(examples, chosen))

    def _read(self, part, labels):
        if part not in self._paths:
            raise ValueError(f"There is no {part} file; pass the path of a table.")
        path, columns = self._paths[part], self.columns
        if part == "test":
            columns = columns.without_label()
        try:
            return read_examples(
                path, columns, part, labels=labels, broken_rows=self.broken_rows
            )
        except tables.MissingColumnError as error:
            raise ValueError(
                f"{error} Choose columns with --text_column, --text_b_column and "
                "--label_column."
            ) from None

    def get_labels(self) -> list[str]:
        """Returns the class names; none for regression.

        Raises:
            ValueError: the class names are unknown, or fewer than two.
        """
        if self.columns.label_kind == checkpoint_heads.REGRESSION:
            return []
        return self._known_labels or self._collected_labels

    def get_files(self, data_dir: str) -> dict[str, tuple[str, ...]]:
        """Returns the given paths, by set name."""
        return {part: (path,) for part, path in self._paths.items()}

    def get_held_out_fingerprint(self) -> str | None:
        """See `DataProcessor.get_held_out_fingerprint`."""
        if not self._validation_split:
            return None
        return text_checks.fingerprint([e.texts for e in self.get_dev_examples()])

    @functools.cached_property
    def _train_examples(self):
        is_regression = self.columns.label_kind == checkpoint_heads.REGRESSION
        examples = self._read("train", self._known_labels)
        self._warn_of_unused_text()
        if not self._known_labels and not is_regression:
            label_names.check_spellings(
                self._paths["train"],
                self._label_counts(examples),
                "Correct them, or list all classes in --labels.",
            )
        return examples

    def _warn_of_unused_text(self):
        path, columns = self._paths["train"], self.columns
        rows = tables.read_table(path, (), header=columns.header, broken_rows=[])
        row = next(rows, None)
        is_unused = columns.text_b_column is None and TEXT_B not in columns.names()
        if row is not None and is_unused and TEXT_B in row.cells:
            message = "%s: the column %s is not used; for pairs pass --text_b_column=%s"
            logger.warning(message, path, TEXT_B, TEXT_B)

    @functools.cached_property
    def _is_held_out(self):
        examples = self._train_examples
        return text_checks.held_out(
            [example.texts for example in examples],
            _strata([example.label for example in examples], self.columns.label_kind),
            share=self._validation_split,
            seed=_HOLD_OUT_SEED,
        )

    @functools.cached_property
    def _collected_labels(self):
        path, kind = self._paths.get("train"), self.columns.label_kind
        if path is None:
            raise ValueError(
                "The class names are unknown; pass --labels in the order of the "
                "model's outputs, or --train_file."
            )
        counts = self._label_counts(self._train_examples)
        labels = sorted(counts)
        if all(map(label_names.is_number, counts)):
            labels.sort(key=float)  # 2 before 10.
        if len(labels) < 2:
            problem = f"the labels contain {len(labels)} different classes"
            if labels and kind == checkpoint_heads.SINGLE_LABEL:
                problem = f"all rows have the label {labels[0]!r}"
            raise ValueError(f"{path}: {problem}; expected at least two classes.")
        if kind == checkpoint_heads.SINGLE_LABEL:
            label_names.check_classes(path, counts)
        return labels

    def _label_counts(self, examples):
        """Returns the number of examples of each class name."""
        cells = [str(example.label) for example in examples]
        return collections.Counter(
            label_names.all_names(cells, self.columns.label_separator)
        )


def _strata(labels, kind):
    """Returns the index of each label or, for regression, the decile."""
    if kind != checkpoint_heads.REGRESSION:
        return np.unique(labels, return_inverse=True)[1].tolist()
    values = [label_names.number_in(label) for label in labels]
    return (np.argsort(np.argsort(values)) * 10 // len(labels)).tolist()


def read_examples(
    path: str,
    columns: Columns,
    set_type: str,
    *,
    labels: Sequence[str] = (),
    broken_rows: list[str] | None = None,
) -> list[InputExample]:
    """Returns the examples of a table. Logs the number of empty texts.

    Args:
        path: of the table; see `tables.read_table`.
        columns: names of its columns.
        set_type: "train", "dev" or "test". Without a column `id`, examples are named
            SET-ROW as in the release, where the header is row 0.
        labels: class names. If empty, all labels are accepted.
        broken_rows: collects the errors of broken rows, which are skipped. None: a
            broken row raises.

    Raises:
        OSError: the file cannot be read.
        ValueError: a row is wrong, and `broken_rows` does not collect its error. The
            message contains file and line.
    """
    rows = tables.read_table(
        path, columns.names(), header=columns.header, broken_rows=broken_rows
    )
    return examples_of(rows, columns, set_type, labels=labels, broken_rows=broken_rows)


def examples_of(
    rows: Iterable[tables.Row],
    columns: Columns,
    set_type: str,
    *,
    labels: Sequence[str] = (),
    broken_rows: list[str] | None = None,
) -> list[InputExample]:
    """Returns the examples of the rows of a table. Arguments as in `read_examples`."""
    examples: list[InputExample] = []
    place_of_id: dict[str, str] = {}
    first_row = 1 if columns.header is None else 0
    for number, row in enumerate(rows, start=first_row):
        with tables.row_faults(broken_rows):
            guid = row.cells.get(columns.id_column or "")
            if guid:
                tables.check_new_id(guid, row.place, place_of_id)
            text_b = columns.text_b_column
            example = InputExample(
                guid=guid or f"{set_type}-{number}",
                text_a=row.cells[columns.text_column],
                text_b=None if text_b is None else row.cells[text_b],
                label=_label(row, columns, labels),
                place=row.place,
            )
            examples.append(example)
    _warn_of_empty(examples)
    return examples


def _label(row, columns, labels):
    if columns.label_column is None:
        return None
    text = (row.cells[columns.label_column] or "").strip()
    try:
        label_names.check_label(
            text, labels, kind=columns.label_kind, separator=columns.label_separator
        )
    except ValueError as error:
        raise ValueError(f"{row.place}: {error}") from None
    return text


def _warn_of_empty(examples):
    empty = [
        example.place for example in examples if not all(map(str.strip, example.texts))
    ]
    if empty:
        logger.warning("%s: a text is empty (%d in total).", empty[0], len(empty))


def file_of(run: Any, data: Any, name: str) -> str:
    """Returns the path of the examples of a Python call; sets the option for pairs.

    Args:
        run: `fine_tune.Run`.
        data: see `fine_tune.classify`.
        name: "train" or "validation".
    """
    text, text_b, label = (
        run.option(f"{column}_column") or column for column in ("text", TEXT_B, "label")
    )
    if not isinstance(label, str):
        raise ValueError(f"label_column is {label!r:.60}; expected one name.")
    separator = run.values.get("label_separator") or _LABEL_SEPARATOR
    if run.option("regression"):
        separator = None
    if (path := given_data.file_path(data)) is None:
        rows = in_memory.rows_of(data, ((text, label), (text, text_b, label)))
        # If only some rows have a second text, the others are refused below.
        is_pair = any(text_b in row for row in rows)
    else:
        is_pair = text_b in next(tables.read_table(path, [])).cells
    if is_pair:
        run.values["text_b_column"] = text_b
    if path is not None:
        return path
    columns = (text, text_b, label) if is_pair else (text, label)
    labeled, has_lists = in_memory.with_label_texts(rows, label, separator)
    if has_lists:
        run.values.setdefault("label_separator", _LABEL_SEPARATOR)
    content = given_data.json_lines(labeled, columns)
    return run.add_file(f"{name}.jsonl", content, trains=name == "train")
