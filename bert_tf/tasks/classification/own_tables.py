"""The user's own tables."""

import collections
import functools
import itertools
from collections.abc import Sequence

import numpy as np

from bert_tf.data import hold_out
from bert_tf.data import label_names
from bert_tf.data import tables
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds

# Fixed, so that all runs on a table are evaluated on the same examples.
_HOLD_OUT_SEED = 12345


class TableProcessor(examples_module.DataProcessor):
    """Reads the user's own tables. `data_dir` is not used.

    Args:
        train_file: for training. See `tables.read_table` for the file formats.
        eval_file: for evaluation.
        predict_file: to predict. It needs no label column.
        columns: names of the columns. Default: those of `examples.Columns`.
        labels: class names. Default: the classes in the training file, sorted.
        validation_split: share of the training file that serves as the evaluation set,
            instead of `eval_file`. 0: none.
    """

    def __init__(
        self,
        *,
        train_file: str | None = None,
        eval_file: str | None = None,
        predict_file: str | None = None,
        columns: examples_module.Columns | None = None,
        labels: Sequence[str] = (),
        validation_split: float = 0.0,
    ):
        self._train_file = train_file
        self._eval_file = eval_file
        self._predict_file = predict_file
        self._columns = columns or examples_module.Columns()
        self._given_labels = list(labels)
        self._validation_split = validation_split

    def get_train_examples(
        self, data_dir: str | None = None
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the training file that are not held out."""
        if not self._validation_split:
            return list(self._train_examples)
        return list(itertools.compress(self._train_examples, ~self._is_held_out))

    def get_dev_examples(
        self, data_dir: str | None = None
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the evaluation file, or those that are held out."""
        if self._validation_split:
            return list(itertools.compress(self._train_examples, self._is_held_out))
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
            "dev": self._train_file if self._validation_split else self._eval_file,
            "test": self._predict_file,
        }
        return {part: path for part, path in paths.items() if path is not None}

    def get_held_out_fingerprint(self) -> str | None:
        """Returns the checksum of the texts that are held out; None if none are."""
        if not self._validation_split:
            return None
        return hold_out.fingerprint([e.texts for e in self.get_dev_examples()])

    def _read(self, path, columns, set_type, *, labels=()):
        try:
            return examples_module.read_examples(
                path, columns, set_type, labels=labels, broken_rows=self.broken_rows
            )
        except tables.MissingColumnError as error:
            raise ValueError(
                f"{error} Choose columns with --text_column, --text_b_column and "
                "--label_column."
            ) from None

    @functools.cached_property
    def _train_examples(self):
        path = _given(self._train_file, "train_file")
        columns, labels = self._columns, self._given_labels
        examples = self._read(path, columns, "train", labels=labels)
        if labels or columns.kind == label_kinds.REGRESSION:
            return examples
        counts = _label_counts(examples, columns.separator)
        label_names.check_spellings(
            path,
            counts,
            "Correct them, or list all classes in --labels.",
        )
        return examples

    @functools.cached_property
    def _is_held_out(self):
        examples = self._train_examples
        labels = [example.label for example in examples]
        return hold_out.held_out(
            [example.texts for example in examples],
            _strata(labels, self._columns.kind),
            share=self._validation_split,
            seed=_HOLD_OUT_SEED,
        )

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


def _strata(labels, kind):
    """Returns the index of each label or, for regression, the decile."""
    if kind != label_kinds.REGRESSION:
        number_of = {label: number for number, label in enumerate(sorted(set(labels)))}
        return [number_of[label] for label in labels]
    ranks = np.argsort(np.argsort([label_kinds.number_in(label) for label in labels]))
    return (ranks * 10 // len(labels)).tolist()


def _label_counts(examples, separator):
    """Returns the number of examples of each class name."""
    return collections.Counter(
        name
        for example in examples
        for name in label_kinds.names_in(example.label, separator)
    )


def _given(path, flag):
    if path is None:
        raise ValueError(f"--{flag} is missing; pass the path of the table.")
    return path
