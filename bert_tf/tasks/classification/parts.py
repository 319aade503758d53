"""The examples of a run, set by set, as a model reads them."""

import functools
import logging

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.tasks.classification import class_weights
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import run_setup
from bert_tf.tasks.classification import windows
from bert_tf.tokenization import in_graph

logger = logging.getLogger(__name__)


class Parts:
    """What a run trains on ("train"), evaluates on ("dev") and predicts ("test").

    A task may have several sets to evaluate on or to predict; their names then start
    with "dev_" and "test_". All are read at once, so that a mistake in the last of them
    shows before the training and not after it.

    Args:
        options: `classification.options.RunClassifierOptions`.
        setup: `run_setup.RunSetup`.
        progress: see `bert_tf.progress`.

    Attributes:
        examples: set -> its examples.
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
        processor, folder = setup.processor, options.data_dir or ""
        self.examples = {}
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
        """Names of the sets to evaluate on."""
        return [name for name in self.examples if name.startswith("dev")]

    @property
    def test(self) -> list[str]:
        """Names of the sets to predict."""
        return [name for name in self.examples if name.startswith("test")]

    def num_train_rows(self) -> int:
        """Returns how many rows an epoch has: examples, or windows of them."""
        if self._setup.task.doc_stride:
            return self.rows("train").num_rows
        return len(self.examples["train"])

    def rows(self, part: str) -> features_module.Rows:
        """Returns the rows of a set; they are made once."""
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
        """Returns the batches of a set; to its columns others may be added."""
        return batching.ArraySource({**self.rows(part).columns, **more_columns})

    def logits_of_examples(self, part: str, logits: np.ndarray) -> np.ndarray:
        """Returns float32 [N, C] of a set's examples for [rows, C] of its rows."""
        return windows.mean_over_windows(
            logits, self.rows(part).example_numbers, len(self.examples[part])
        )

    def log_weights(self) -> None:
        """Logs how much each class counts, where not all count the same."""
        for name, weight in (self._weights or {}).items():
            logger.info("  Weight of %s = %.4g", name, weight)

    @functools.cached_property
    def _tokenizer(self):
        return in_graph.InGraphTokenizer(
            self._setup.vocabulary, do_lower_case=self._setup.task.do_lower_case
        )
