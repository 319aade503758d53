"""Examples from TensorFlow Datasets."""

from typing import cast

import numpy as np

from bert_tf.data import named_datasets
from bert_tf.data import tables
from bert_tf.tasks.classification import data_options
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds

# Columns of the texts in GLUE. Other datasets must have exactly one column of text.
_TEXTS_OF_GLUE = {
    "glue/ax": ("premise", "hypothesis"),
    "glue/cola": ("sentence", None),
    "glue/mnli": ("premise", "hypothesis"),
    "glue/mrpc": ("sentence1", "sentence2"),
    "glue/qnli": ("question", "sentence"),
    "glue/qqp": ("question1", "question2"),
    "glue/rte": ("sentence1", "sentence2"),
    "glue/sst2": ("sentence", None),
    "glue/stsb": ("sentence1", "sentence2"),
    "glue/wnli": ("sentence1", "sentence2"),
}
# GLUE configurations whose names differ from those of --task_name.
_TASK_NAMES = {"sst2": "sst-2", "stsb": "sts-b"}
_PARTS = ("train", "dev", "test")
# Columns that name an example; GLUE uses idx.
_IDS = ("idx", "id")


class TfdsProcessor(examples_module.DataProcessor):
    """Reads a TensorFlow dataset, which is downloaded on first use.

    Args:
        options: of the run, with `tfds_name`. `data_dir` is the folder of TensorFlow
            Datasets.
        known: columns that the model was trained on, if there is a trained model.

    Attributes:
        columns: names of the columns.
        task_name: GLUE task, or None.

    Raises:
        ImportError: tensorflow-datasets is not installed.
        ValueError: the dataset is unknown, or the columns of the texts or the label are
            missing or unclear.
        OSError: the dataset can be neither read nor downloaded.
    """

    def __init__(
        self,
        options: data_options.DataOptions,
        known: examples_module.Columns | None = None,
    ):
        name = cast(str, options.tfds_name)
        self._data = named_datasets.open_data_set(name, options.data_dir)
        self._name = name
        texts_of_glue = named_datasets.declared(_TEXTS_OF_GLUE, name)
        config = name.partition(":")[0].rpartition("/")[2]
        self.task_name = _TASK_NAMES.get(config, config) if texts_of_glue else None
        features = self._data.features
        text, text_b = options.text_column, options.text_b_column
        if text is None:
            text, text_b = texts_of_glue or _known_text(name, features, known)
        label = options.label_column or (known.label if known else "label")
        for column in filter(None, (text, text_b, label)):
            if column not in features:
                raise ValueError(
                    f"--tfds_name={self._name} has no column {column}; the columns are "
                    f"{', '.join(features)}."
                )
        is_number = np.dtype(features[label].np_dtype).kind == "f"
        self.columns = examples_module.Columns(
            text=text,
            text_b=text_b,
            label=label,
            kind=label_kinds.REGRESSION if is_number else label_kinds.SINGLE_LABEL,
        )
        self._splits = dict(zip(_PARTS, options.tfds_splits, strict=True))

    def get_train_examples(
        self, data_dir: str | None = None
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the first split."""
        return self._read("train", self._split("train"), self.columns)

    def get_dev_examples(
        self, data_dir: str | None = None
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the second split; for MNLI, the matched one."""
        return next(iter(self.get_dev_sets().values()))

    def get_test_examples(
        self, data_dir: str | None = None
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the third split; for MNLI, the matched one."""
        return next(iter(self.get_test_sets().values()))

    def get_dev_sets(
        self, data_dir: str | None = None
    ) -> dict[str, list[examples_module.InputExample]]:
        """Returns the examples of the second split, or of both sets of MNLI."""
        return {
            part: self._read(part, split, self.columns)
            for part, split in self._sets("dev").items()
        }

    def get_test_sets(
        self, data_dir: str | None = None
    ) -> dict[str, list[examples_module.InputExample]]:
        """Returns the examples of the third split, or of both sets of MNLI."""
        columns = self.columns.without_label()
        return {
            part: self._read(part, split, columns)
            for part, split in self._sets("test").items()
        }

    def get_labels(self) -> list[str]:
        """Returns the class names; an empty list for regression.

        Raises:
            ValueError: the dataset does not name its classes.
        """
        if self.columns.kind == label_kinds.REGRESSION:
            return []
        names = getattr(self._data.features[self.columns.label], "names", None)
        if not names:
            raise ValueError(
                f"--tfds_name={self._name}: the column {self.columns.label} has no "
                "class names; choose another column with --label_column."
            )
        return list(names)

    def get_set_name(self, part: str) -> str | None:
        """Returns the dataset, version and split, such as "glue/mrpc/2.0.0 test"."""
        split = self._sets(part.split("_")[0])[part]
        return f"{self._data.full_name} {split}"

    def _sets(self, part):
        """Returns the split of each set of a part; MNLI has two sets per part."""
        split = self._splits[part]
        matched = f"{split}_matched"
        if split in self._data.splits or matched not in self._data.splits:
            return {part: self._split(part)}
        return {part: matched, f"{part}_mismatched": f"{split}_mismatched"}

    def _split(self, part):
        split = self._splits[part]
        self._data.check_split(split)
        return split

    def _read(self, part, split, columns):
        id_column = next((n for n in _IDS if n in self._data.features), None)
        rows = []
        for number, record in enumerate(self._data.records(split)):
            cells = {name: _text(record[name]) for name in columns.names()}
            if id_column:
                cells[examples_module.ID_COLUMN] = _text(record[id_column])
            rows.append(tables.Row(place=f"{self._name}:{split}:{number}", cells=cells))
        return examples_module.examples_of(
            rows,
            columns,
            part,
            labels=self.get_labels() if columns.label else (),
            broken_rows=self.broken_rows,
        )


def _text(value):
    return "" if value is None else str(value)


def _known_text(name, features, known):
    if known is not None and known.text in features:
        return known.text, known.text_b
    texts = [
        key for key, feature in features.items() if feature.np_dtype in (object, str)
    ]
    if len(texts) != 1:
        raise ValueError(
            f"--tfds_name={name}: expected one column of text, got "
            f"{', '.join(texts) or 'none'}; choose with --text_column, and with "
            "--text_b_column for pairs."
        )
    return texts[0], None
