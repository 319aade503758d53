"""The user's own tables."""

import collections
import dataclasses
import functools
from collections.abc import Sequence

from bert_tf.data import label_names
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds


class TableProcessor(examples_module.DataProcessor):
    """Reads the user's own tables. `data_dir` is not used.

    Args:
        train_file: for training. See `tables.read_table` for the file formats.
        eval_file: for evaluation.
        predict_file: to predict. It needs no label column.
        columns: names of the columns. Default: those of `examples.Columns`.
        labels: class names. Default: the classes in the training file, sorted.
    """

    def __init__(
        self,
        *,
        train_file: str | None = None,
        eval_file: str | None = None,
        predict_file: str | None = None,
        columns: examples_module.Columns | None = None,
        labels: Sequence[str] = (),
    ):
        self._train_file = train_file
        self._eval_file = eval_file
        self._predict_file = predict_file
        self._columns = columns or examples_module.Columns()
        self._given_labels = list(labels)

    def get_train_examples(
        self, data_dir: str | None = None
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the training file."""
        return list(self._train_examples)

    def get_dev_examples(
        self, data_dir: str | None = None
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the evaluation file."""
        path = _given(self._eval_file, "eval_file")
        return self._read(path, self._columns, "dev", labels=self.get_labels())

    def get_test_examples(
        self, data_dir: str | None = None
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the file to predict."""
        path = _given(self._predict_file, "predict_file")
        return self._read(path, self._columns.without_label(), "test")

    def get_labels(self) -> list[str]:
        """Returns the class names; an empty list for regression.

        Raises:
            ValueError: the training file has fewer than two classes, or neither a
                training file nor class names are given.
        """
        if self._columns.kind == label_kinds.REGRESSION:
            return []
        if self._given_labels:
            return list(self._given_labels)
        if self._train_file is None:
            raise ValueError(
                "The class names are unknown; pass --labels in the order of the "
                "model's outputs, or --train_file."
            )
        return list(self._collected_labels)

    def get_files(self, data_dir: str | None = None) -> dict[str, str]:
        """Returns the given paths, by set name."""
        paths = {
            "train": self._train_file,
            "dev": self._eval_file,
            "test": self._predict_file,
        }
        return {part: path for part, path in paths.items() if path is not None}

    def _read(self, path, columns, set_type, *, labels=()):
        return examples_module.read_examples(
            path, columns, set_type, labels=labels, broken_rows=self.broken_rows
        )

    @functools.cached_property
    def _train_examples(self):
        path = _given(self._train_file, "train_file")
        columns, labels = self._columns, self._given_labels
        examples = self._read(path, columns, "train", labels=labels)
        if labels or columns.kind == label_kinds.REGRESSION:
            return examples
        counts = _label_counts(examples, columns.separator)
        if columns.merge_labels:
            return _respelled(examples, counts, columns.separator)
        label_names.check_spellings(
            path,
            counts,
            "Correct them, pass --merge_labels to count them as one class (the first), "
            "or list all classes in --labels.",
        )
        return examples

    @functools.cached_property
    def _collected_labels(self):
        labels = sorted(_label_counts(self._train_examples, self._columns.separator))
        if len(labels) < 2:
            if self._columns.kind == label_kinds.MULTI_LABEL or not labels:
                found = f"the labels contain {len(labels)} different classes"
            else:
                found = f"all rows have the label {labels[0]!r}"
            raise ValueError(
                f"{self._train_file}: {found}; expected at least two classes."
            )
        return labels


def _label_counts(examples, separator):
    """Returns the number of examples of each class name."""
    return collections.Counter(
        name
        for example in examples
        for name in label_kinds.names_in(example.label, separator)
    )


def _respelled(examples, counts, separator):
    """Returns the examples with the most frequent spelling of each class."""
    known = sorted(counts, key=lambda name: (-counts[name], name))
    known = list({label_names.key(name): name for name in reversed(known)}.values())
    return [
        dataclasses.replace(
            example, label=label_kinds.respelled(example.label, known, separator)
        )
        for example in examples
    ]


def _given(path, flag):
    if path is None:
        raise ValueError(f"--{flag} is missing; pass the path of the table.")
    return path
