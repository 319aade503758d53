"""The data sets of a run: their examples, features and batches."""

import functools
import logging
import typing

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.data import text_checks
from bert_tf.tasks.classification import class_weights
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import run_setup
from bert_tf.tasks.classification import windows
from bert_tf.tokenization import in_graph

logger = logging.getLogger(__name__)

_NAMES = {"train": "training"}


class Parts:
    """The sets that a run needs, by name: "train", "dev", "test".

    If a task has several sets for evaluation or prediction, the names of the further
    sets begin with "dev_" or "test_". All tables are read at once, so that an error in
    any of them is found before training.

    Args:
        options: of the run.
        setup: of the run.
        progress: see `bert_tf.progress`.

    Attributes:
        examples: the examples of each set.
    """

    def __init__(
        self,
        options: classification_options.RunClassifierOptions,
        setup: run_setup.RunSetup,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self._options = options
        self._setup = setup
        self._progress = progress
        self._rows: dict[str, features_module.Rows] = {}
        # Options check that named tasks have a data_dir; other processors ignore it.
        processor, folder = setup.processor, typing.cast(str, options.data_dir)
        self.examples: dict[str, list[examples_module.InputExample]] = {}
        if options.trains:
            self.examples["train"] = processor.get_train_examples(folder)
        if options.evaluates:
            self.examples |= processor.get_dev_sets(folder)
        if options.do_predict:
            self.examples |= processor.get_test_sets(folder)
        self._weights = None
        if "train" in self.examples:
            self._weights = class_weights.weights_of(
                options.class_weights, setup.task, self.examples["train"]
            )

    @property
    def dev(self) -> list[str]:
        """Names of the sets for evaluation."""
        return [name for name in self.examples if name.startswith("dev")]

    @property
    def test(self) -> list[str]:
        """Names of the sets to predict."""
        return [name for name in self.examples if name.startswith("test")]

    def num_train_rows(self) -> int:
        """Returns the number of rows of an epoch: one per example or window."""
        if self._setup.task.doc_stride:
            return self.rows("train").num_rows
        return len(self.examples["train"])

    def rows(self, part: str) -> features_module.Rows:
        """Returns the features of a set, computed at the first call."""
        if part not in self._rows:
            self._rows[part] = features_module.rows_of(
                self.examples[part],
                self._setup.task,
                self._tokenizer,
                weights=self._weights if part == "train" else None,
                progress=self._progress,
            )
        return self._rows[part]

    def source(self, part: str, **more_columns: np.ndarray) -> batching.ArraySource:
        """Returns the batches of a set, with additional columns."""
        return batching.ArraySource({**self.rows(part).columns, **more_columns})

    def logits_of_examples(self, part: str, logits: np.ndarray) -> np.ndarray:
        """Returns the logits of examples, [N, C], given those of rows, [rows, C]."""
        return windows.mean_over_windows(
            logits, self.rows(part).example_numbers, len(self.examples[part])
        )

    def facts(self, part: str) -> tuple[str, ...]:
        """Returns sentences about the labels of a set and the lengths of its texts."""
        task, texts = self._setup.task, f"{_NAMES.get(part, part)} texts"
        labels = [e.label for e in self.examples[part] if e.label is not None]
        found = []
        if labels and task.label_kind == label_kinds.REGRESSION:
            range_of_labels = label_kinds.range_of(labels)
            found.append(f"Labels of the {texts}: {range_of_labels}.")
        elif labels:
            separator = task.label_separator
            names = [n for x in labels for n in label_kinds.names_in(x, separator)]
            found.append(f"Classes of the {texts}: {text_checks.balance(names)}.")
        lengths = self.rows(part).lengths
        if lengths is not None:
            lengths_text = text_checks.truncation(
                lengths,
                room=task.max_seq_length - (3 if task.is_pair else 2),
                limit=f"--max_seq_length={task.max_seq_length}",
            )
            found.append(f"Of the {texts}, {lengths_text}.")
        return tuple(found)

    def log_weights(self) -> None:
        """Logs the class weights, if there are any."""
        for name, weight in (self._weights or {}).items():
            logger.info("  Weight of %s = %.4g", name, weight)

    @functools.cached_property
    def _tokenizer(self):
        return in_graph.InGraphTokenizer(
            self._setup.vocabulary, **self._setup.task.tokenizer_arguments()
        )
