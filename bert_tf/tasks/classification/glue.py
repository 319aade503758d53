"""Published data: GLUE and XNLI in their own files, and TensorFlow datasets.

`parts` maps the sets of a task to file names. The names of sets for evaluation begin
with "dev", and those of sets to predict with "test".
"""

import dataclasses
import itertools
import logging
import os
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import named_datasets
from bert_tf.data import tables
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import options as classification_options

logger = logging.getLogger(__name__)

_PARTS = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_PARTS_OF_MNLI = {
    "train": "train.tsv",
    "dev": "dev_matched.tsv",
    "dev_mismatched": "dev_mismatched.tsv",
    "test": "test_matched.tsv",
    "test_mismatched": "test_mismatched.tsv",
}
# Columns of the texts in TensorFlow Datasets, where they have other names.
_TFDS_TEXTS = {
    "mnli": ("premise", "hypothesis"),
    "mrpc": ("sentence1", "sentence2"),
}
# GLUE configurations whose names differ from those of --task_name.
_TFDS_TASK_NAMES = {"sst2": "sst-2", "stsb": "sts-b"}
# In the order of the release's MnliProcessor and XnliProcessor.
ENTAILMENT_LABELS = ("contradiction", "entailment", "neutral")


def _columns(text, text_b=None, *, label="label", id_column=None, **others):
    """Returns the columns of the files of a task."""
    names = {"text_column": text, "text_b_column": text_b, "label_column": label}
    return examples_module.Columns(**names, id_column=id_column, **others)


_ONE_SENTENCE = _columns("sentence")
_TWO_SENTENCES = _columns("sentence1", "sentence2")


class GlueProcessor(examples_module.DataProcessor):
    """Reads a task from tables. Subclasses set its columns, labels and files."""

    labels: tuple[str, ...] = ("0", "1")
    languages = ("en",)
    parts = _PARTS

    def get_files(self, data_dir: str) -> dict[str, tuple[str, ...]]:
        """Returns the paths of the task's files."""
        names = self.parts.items()
        return {part: (os.path.join(data_dir, name),) for part, name in names}


class ColaProcessor(GlueProcessor):
    """CoLA: is a sentence acceptable English? Score: Matthews correlation."""

    columns = _columns(
        "sentence", header=("source", "label", "original_label", "sentence")
    )


class Sst2Processor(GlueProcessor):
    """SST-2: is a sentence of a film review positive? Score: accuracy."""

    columns = _ONE_SENTENCE


class MrpcProcessor(GlueProcessor):
    """MRPC: are two sentences paraphrases? Scores: F1 and accuracy."""

    columns = _columns("#1 String", "#2 String", label="Quality")


class StsbProcessor(GlueProcessor):
    """STS-B: how similar are two sentences, from 0 to 5? Scores: correlations."""

    columns = dataclasses.replace(
        _TWO_SENTENCES, label_column="score", label_kind=checkpoint_heads.REGRESSION
    )
    labels = ()


class QqpProcessor(GlueProcessor):
    """QQP: are two Quora questions duplicates? Scores: F1 and accuracy."""

    columns = _columns("question1", "question2", label="is_duplicate")

    def read(self, data_dir: str, part: str) -> list[examples_module.InputExample]:
        """Returns the examples of one file, without the rows that are broken in GLUE.

        Some questions contain a line break, which splits their row in two. GLUE's own
        baselines also skip such rows.
        """
        if part == "test":
            return super().read(data_dir, part)
        [path] = self.get_files(data_dir)[part]
        broken: list[str] = []
        rows = tables.read_table(path, self.columns.names(), broken_rows=broken)
        examples = examples_module.examples_of(
            rows,
            self.columns,
            part,
            labels=self.get_labels(),
            broken_rows=self.broken_rows,
        )
        if broken:
            logger.warning(
                "%s Skipped %d rows with such errors.", broken[0], len(broken)
            )
        return examples


class MnliProcessor(GlueProcessor):
    """MNLI: does the first sentence imply or contradict the second? Score: accuracy.

    There is one set with the genres of the training set ("matched") and one with other
    genres ("mismatched").
    """

    columns = _columns("sentence1", "sentence2", label="gold_label")
    labels = ENTAILMENT_LABELS
    parts = _PARTS_OF_MNLI


class QnliProcessor(GlueProcessor):
    """QNLI: does a sentence contain the answer to a question? Score: accuracy."""

    columns = _columns("question", "sentence")
    labels = ("entailment", "not_entailment")


class RteProcessor(GlueProcessor):
    """RTE: does the first sentence imply the second? Score: accuracy."""

    columns = _TWO_SENTENCES
    labels = ("entailment", "not_entailment")


class WnliProcessor(GlueProcessor):
    """WNLI: is the sentence with its pronoun replaced implied? Score: accuracy."""

    columns = _TWO_SENTENCES


# The language of the release.
DEFAULT_LANGUAGE = "zh"
_LANGUAGE = "language"
_TRAIN_COLUMNS = _columns("premise", "hypo")
# The label "contradiction" in the training files.
_CONTRADICTORY = "contradictory"
_FOLDERS = ("", "XNLI-1.0", "XNLI-MT-1.0", "multinli", "XNLI-MT-1.0/multinli")


class XnliProcessor(examples_module.DataProcessor):
    """Reads XNLI, MNLI in 15 languages, in one or several of them.

    The folder contains the unpacked files of XNLI-MT-1.0.zip and XNLI-1.0.zip, with or
    without their own folders: multinli/multinli.train.LANGUAGE.tsv, machine
    translations of MNLI, and xnli.dev.tsv and xnli.test.tsv, all languages in one file.

    Args:
        languages: such as ("en", "de"). Their training files are concatenated.

    Source: XnliProcessor of run_classifier.py, 2018, which had one language for both.
    """

    columns = MnliProcessor.columns
    labels = ENTAILMENT_LABELS

    def __init__(self, languages: Sequence[str] = (DEFAULT_LANGUAGE,)):
        self.languages = self.eval_languages = tuple(languages) or (DEFAULT_LANGUAGE,)

    def get_files(self, data_dir: str) -> dict[str, tuple[str, ...]]:
        """Returns the paths of the file of each training language, dev and test."""
        names = [f"multinli.train.{language}.tsv" for language in self.languages]
        return {
            "train": tuple(self._path(data_dir, name) for name in names),
            "dev": (self._path(data_dir, "xnli.dev.tsv"),),
            "test": (self._path(data_dir, "xnli.test.tsv"),),
        }

    def read(self, data_dir: str, part: str) -> list[examples_module.InputExample]:
        """Returns "train", "dev" or "test" in all languages, one after the other."""
        return list(itertools.chain(*self.read_sets(data_dir, part).values()))

    def read_sets(
        self, data_dir: str, kind: str
    ) -> dict[str, list[examples_module.InputExample]]:
        """Returns a set, or sets such as "dev_LANGUAGE" for each of several languages.

        "train" is one set.
        """
        paths = self.get_files(data_dir)[kind]
        if kind == "train":
            return {kind: list(itertools.chain(*map(self._train_examples, paths)))}
        [path] = paths
        columns = self.columns if kind == "dev" else self.columns.without_label()
        rows_of: dict[str, list[tables.Row]] = {}
        names = [*columns.names(), _LANGUAGE]
        for row in tables.read_table(path, names, broken_rows=self.broken_rows):
            rows_of.setdefault(row.cells[_LANGUAGE], []).append(row)
        sets = {}
        for language in self.languages:
            if language not in rows_of:
                raise ValueError(
                    f"{path} has no rows in the language {language!r}; its languages "
                    f"are {', '.join(sorted(rows_of))}."
                )
            name = kind if len(self.languages) == 1 else f"{kind}_{language}"
            sets[name] = examples_module.examples_of(
                rows_of[language],
                columns,
                kind,
                labels=self.labels,
                broken_rows=self.broken_rows,
            )
        return sets

    def _path(self, data_dir: str, name: str) -> str:
        """Returns the path of a file, in the folder or in those of the zip files."""
        paths = [os.path.join(data_dir, folder, name) for folder in _FOLDERS]
        return next(filter(files.exists, paths), paths[0])

    def _train_examples(self, path):
        labels = [*ENTAILMENT_LABELS, _CONTRADICTORY]
        for example in examples_module.read_examples(
            path, _TRAIN_COLUMNS, "train", labels=labels, broken_rows=self.broken_rows
        ):
            if example.label == _CONTRADICTORY:
                example = dataclasses.replace(example, label=ENTAILMENT_LABELS[0])
            yield example


def tfds_processor(
    options: classification_options.RunClassifierOptions,
    known: Any,
) -> examples_module.TableProcessor:
    """Returns the reader of a TensorFlow dataset, each split of which is a table.

    Args:
        options: of the run.
        known: the record of the model to apply. None: the run trains a new model.

    Raises:
        ImportError, OSError, ValueError: the data set cannot be read.
    """
    name = str(options.tfds_name)
    builder, _, config = name.partition(":")[0].partition("/")  # Without the version.
    task_name = _TFDS_TASK_NAMES.get(config, config)
    task = PROCESSORS.get(task_name) if builder == "glue" else None
    data = named_datasets.open_data_set(name, options.data_dir)
    texts: Any = (options.text_column, options.text_b_column)
    if texts[0] is None:
        if task is not None:
            texts = _TFDS_TEXTS.get(task_name, task.columns.text_columns)
        elif known is not None and known.text_column in data.features:
            texts = (known.text_column, known.text_b_column)
        else:
            texts = ("text",)
    label = options.label_column or (known and known.label_column) or "label"
    columns = _columns(
        *texts,
        label=label,
        label_kind=checkpoint_heads.REGRESSION,
        id_column=examples_module.ID_COLUMN,
    )
    data.check_columns(columns.names())
    labels = data.class_names(label)
    if labels is not None:
        columns = dataclasses.replace(columns, label_kind=checkpoint_heads.SINGLE_LABEL)
    processor = examples_module.TableProcessor(
        named_datasets.split_tables(data, options.sets_to_read),
        columns=columns,
        labels=labels or (),
    )
    processor.task_name = task_name if task is not None else None
    return processor


PROCESSORS: dict[str, type[GlueProcessor]] = {
    "cola": ColaProcessor,
    "mrpc": MrpcProcessor,
    "sst-2": Sst2Processor,
    "sts-b": StsbProcessor,
    "qqp": QqpProcessor,
    "mnli": MnliProcessor,
    "qnli": QnliProcessor,
    "rte": RteProcessor,
    "wnli": WnliProcessor,
}
