"""What a fine-tuning task declares. `fine_tuning.run` runs any task from this."""

import abc
import dataclasses
import functools
import json
import os
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import ClassVar
from typing import cast

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import starting_point
from bert_tf.data import batching
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import run_report
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import evaluation as training_evaluation
from bert_tf.training import loop
from bert_tf.training import run_file

PREDICTIONS_FILE = "predictions.jsonl"
# Computes outputs of the model: (source of batches, keys=names of the outputs) -> the
# outputs of all rows by name. `training.evaluation.Evaluation.predict` is one.
Predict = Callable[..., dict[str, np.ndarray]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The rows to train on, and what is known about them."""

    source: batching.Source
    facts: tuple[str, ...] = ()  # Sentences for the log and the model card.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The scores of the development set."""

    scores: Mapping[str, float]  # By name, such as "eval_accuracy".
    outputs: Any = None  # What `Task.plot_data` needs.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predicted:
    """The predictions for the test set."""

    # Lines or larger pieces of text of each result file, by name.
    files: Mapping[str, Iterable[str]]
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)  # "test_...".


class Task(fine_tuning_checks.CheckedTask):
    """The declaration of a task. An instance holds the data of one run.

    The runner sets the attributes `trained`, `start`, `record`, `identities` and
    `trainer` in this order, and calls the methods in the order in which they are
    defined here.

    Args:
        options: of the run.

    Attributes:
        options: of the run.
        examples: the examples of each set: "train", "dev", "test". Further sets for
            evaluation and prediction are called "dev_..." and "test_...".
        trained: the record of the finished run that is applied or evaluated. None if
            the options describe the task.
        start: model size, vocabulary and casing.
        record: the content of task.json, returned by `read`.
        identities: returned by `data_sets`.
        trainer: model, devices and run folder.
    """

    RECORD: ClassVar[type[task_record.TaskRecord]]
    PREDICTOR: ClassVar[type[fine_tuning_predictor.Predictor]]
    PIPELINE_TAG: ClassVar[str]  # Task name on the Hub, such as "text-ranking".
    # Options that are also fields of the record. A finished run fixes them.
    FIXED: ClassVar[tuple[str, ...]] = ("max_seq_length", "do_lower_case")
    # Further ones that the data determines if they are not given.
    FROM_DATA: ClassVar[tuple[str, ...]] = ()
    # Fields of the record that may differ when training is resumed.
    MAY_CHANGE: ClassVar[tuple[str, ...]] = ()
    UNIT: ClassVar[str] = "examples"  # What `num_train_rows` counts.
    NOUN: ClassVar[str] = "examples"  # What facts of the training data call them.
    # Option with the batch size of predictions.
    PREDICTION_BATCH: ClassVar[str] = "predict_batch_size"

    start: starting_point.StartingPoint
    record: Any
    identities: Mapping[str, run_file.DataSet]
    trainer: loop.Trainer

    def __init__(
        self,
        options: Any,
    ):
        self.options = options
        self.examples: dict[str, Any] = {}
        self.trained: Any = None
        self._features: dict[str, Any] = {}

    def find_start(self) -> None:
        """Sets `trained` and `start`; see `task_record.find_start`."""
        fixed = (*self.FIXED, *self.FROM_DATA)
        self.trained = task_record.trained(self.options, self.RECORD, fixed)
        self.start = task_record.find_start(self.options, self.trained)

    @property
    def config(self) -> config_module.BertConfig:
        """The size of the encoder."""
        return self.start.config

    @property
    def vocabulary(self) -> vocabulary_module.Vocabulary:
        """The vocabulary of the run."""
        return cast(vocabulary_module.Vocabulary, self.start.vocabulary)

    # Data.

    def paths(self) -> dict[str, str | None]:
        """Returns the file of each set that the options name; None for a missing one.

        It includes sets that this run does not read. The default: `train_file`,
        `eval_file` and `predict_file`.
        """
        names = ("train_file", "eval_file", "predict_file")
        paths = (getattr(self.options, name) for name in names)
        return dict(zip(("train", "dev", "test"), paths, strict=True))

    def data_sets(self) -> dict[str, run_file.DataSet]:
        """Returns the identity of the data of each set, also of sets that are not read.

        The default names a set after its file, or after `data_dir`.
        """
        folder = getattr(self.options, "data_dir", None)
        base = os.path.basename(os.path.abspath(folder)) if folder else None
        return {
            name: run_file.DataSet(name=base or run_file.stem(path), paths=(path,))
            for name, path in self.paths().items()
            if path is not None
        }

    @abc.abstractmethod
    def read_set(
        self, name: str, path: str, *, broken_rows: list[str] | None = None
    ) -> Any:
        """Returns the examples of a set.

        Args:
            name: "train", "dev" or "test".
            path: of its file.
            broken_rows: collects the errors of broken rows, which are skipped. None: a
                broken row raises. Only checks pass a list.

        Raises:
            OSError, ValueError: the file cannot be read.
        """

    def read(self) -> task_record.TaskRecord:
        """Reads all examples that the run needs; returns the record of the task."""
        paths = self.paths()
        for name in self.options.sets_to_read:
            self.examples[name] = self.read_set(name, str(paths[name]))
        return self.applied_record() if self.trained else self.new_record()

    def new_record(self) -> task_record.TaskRecord:
        """Returns the record that options, examples and `start` describe."""
        return self.create_record()

    def create_record(self, *sources: Any, **values: Any) -> Any:
        """Returns a record with the casing of `start`.

        Args:
            *sources: objects with attributes that are fields of the record. The last
                one is always `options`.
            **values: further fields.
        """
        values |= self.start.tokenizer_arguments()
        for field in dataclasses.fields(self.RECORD):
            for source in (*sources, self.options):
                if hasattr(source, field.name):
                    values.setdefault(field.name, getattr(source, field.name))
        return self.RECORD(**values)

    def applied_record(self) -> task_record.TaskRecord:
        """Returns `trained`, with fields that options of an applied run may change."""
        return self.trained

    def check_head(self, head: checkpoint_heads.Head) -> None:
        """Refuses an `init_checkpoint` whose head cannot be applied without training.

        Raises:
            ValueError: it is the head of another task, or has other labels.
        """
        if head.kind != self.RECORD.KIND:
            task = self.RECORD.KIND.replace("_", " ")
            raise ValueError(
                f"{self.options.init_checkpoint} has no {task} head, so it was not "
                "fine-tuned for this task; train first (--do_train)."
            )

    @property
    def is_held_out(self) -> bool:
        """Whether "dev" is a part of the training file that is not trained on."""
        return False

    @property
    def longest_sequence(self) -> int:
        """Maximum number of word pieces of a sequence."""
        return self.record.max_seq_length

    @property
    def num_special(self) -> int:
        """The number of special tokens of a sequence."""
        return 2

    def text_limits(self, settings: Any) -> dict[str, Any]:
        """Returns `room` and `limit` of `text_checks.check_lengths`.

        Args:
            settings: options or the record of the task.
        """
        limit = settings.max_seq_length
        return {"room": limit - self.num_special, "limit": f"--max_seq_length={limit}"}

    # Model and training.

    def create_model(self) -> heads.TaskModel:
        """Returns the model to train. Called in the scope of the strategy."""
        return self.record.create_model(self.config, dtype=self.options.dtype)

    def num_train_rows(self) -> int:
        """Returns the number of rows of an epoch."""
        return len(self.examples["train"])

    def counts(self) -> dict[str, int]:
        """Returns numbers to log before the training, by name."""
        return {"Num examples": len(self.examples["train"])}

    def training_data(self) -> TrainingData:
        """Returns the rows to train on. Called after all checks."""
        features, facts = self.features("train"), self.training_facts()
        if isinstance(features, packing.Rows):
            limits = self.text_limits(self.record)
            described = text_checks.truncation(features.lengths, **limits)
            facts = (*facts, f"Of the training {self.NOUN}, {described}.")
        return TrainingData(source=batching.ArraySource(features.columns), facts=facts)

    def training_facts(self) -> tuple[str, ...]:
        """Returns what the log and the model card say about the training examples."""
        return ()

    @functools.cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the run."""
        return in_graph.InGraphTokenizer(
            self.vocabulary, **self.record.tokenizer_arguments()
        )

    def features(self, name: str) -> Any:
        """Returns `convert` of a set, computed at the first call.

        Logs how many examples the model does not read completely. For "train",
        `training_data` reports this.
        """
        if name not in self._features:
            features = self._features[name] = self.convert(name)
            if name != "train" and isinstance(features, packing.Rows):
                text_checks.warn_of_truncated(
                    features.lengths,
                    **self.text_limits(self.record),
                    inputs=f"examples of {name}",
                )
        return self._features[name]

    def convert(self, name: str) -> Any:
        """Returns the features of a set, such as `packing.Rows`; see `features`."""
        raise NotImplementedError

    def outputs(self, predict: Predict, name: str, key: str = "logits") -> np.ndarray:
        """Returns an output of the model for all rows of a set."""
        source = batching.ArraySource(self.features(name).columns)
        return predict(source, keys=(key,))[key]

    # Evaluation and prediction.

    @abc.abstractmethod
    def evaluate(self, predict: Predict) -> Evaluation:
        """Returns the scores of the development sets with the current weights."""

    @abc.abstractmethod
    def plot_data(self, evaluation: Evaluation) -> dict[str, Any]:
        """Returns the data of an evaluation's plots; see `training.plots`."""

    def prediction(self, batch_size: int) -> training_evaluation.Evaluation:
        """Returns what computes outputs of the run's model.

        Args:
            batch_size: rows per step over all replicas.
        """
        return training_evaluation.Evaluation(
            self.trainer.model,
            self.trainer.strategy,
            dataclasses.replace(self.options, eval_batch_size=batch_size),
            length_buckets=self.options.length_buckets,
            stage="predict",
        )

    @abc.abstractmethod
    def predict(self, predict: Predict) -> Predicted:
        """Returns the predictions for the test sets."""

    @abc.abstractmethod
    def summary(self) -> str:
        """Returns a sentence for the model card that says what the model does."""

    def card(self) -> run_report.Card:
        """Returns the part of the model card that does not depend on the results."""
        return run_report.Card(
            pipeline_tag=self.PIPELINE_TAG,
            summary=self.summary(),
            labels=getattr(self.record, "labels", None),
            options=self.options,
            data=self.data_files(),
        )

    def data_files(self) -> tuple[run_report.DataFile, ...]:
        """Returns the files that the run read, for the model card."""
        paths = self.paths()
        return tuple(
            self.data_file(name, str(paths[name]), len(examples))
            for name, examples in self.examples.items()
        )

    def data_file(self, part: str, path: str, num_examples: int) -> run_report.DataFile:
        """Returns the record of a file of the run; see `run_report.DataFile`."""
        sets = [one for one in self.identities.values() if path in one.paths]
        # The checksum of a known set is from when it was read.
        data_set = sets[0] if sets else run_file.file_data_set(path)
        return run_report.DataFile(
            part=part,
            name=os.path.basename(path),
            num_examples=num_examples,
            sha256=data_set.sha256(path),
        )

    # Python calls.

    @classmethod
    def give_data(cls, run: Any, train: Any, validation: Any) -> None:
        """Sets the options that name the data of a Python caller.

        Args:
            run: `fine_tune.Run`; see `given_data`.
            train: the examples, in memory or in a file; see `bert_tf.fine_tune`.
            validation: a share of `train`, other examples, or None.
        """
        raise NotImplementedError

    @classmethod
    def prepare_predictor(cls, predictor: Any, run: Any) -> Any:
        """Returns the predictor of a Python call, ready to be used.

        Args:
            predictor: of the trained model.
            run: see `give_data`.
        """
        return predictor


def json_lines(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields records as lines of a .jsonl file."""
    for record in records:
        yield json.dumps(record, ensure_ascii=False) + "\n"
