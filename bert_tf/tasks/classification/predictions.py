"""The record of a classifier, its answers and files, its predictor, and its teacher."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.data import batching
from bert_tf.data import packing
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.modeling import numerics
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import options as classification_options
from bert_tf.training import evaluation as training_evaluation

RELEASE_FILE = "test_results.tsv"
THRESHOLD = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(task_record.TaskRecord):
    """How to apply a classifier to new texts."""

    KIND = "classification"

    # In the order of the outputs. Empty for regression, unless it is an external model
    # with several outputs.
    labels: tuple[str, ...]
    task_name: str | None = None  # GLUE task or XNLI. None for your own data.
    # Columns of the training tables, and the defaults for other tables.
    text_column: str = "text"
    text_b_column: str | None = None  # None if the model reads single texts.
    label_column: str | None = "label"
    label_kind: str = checkpoint_heads.SINGLE_LABEL
    # Between class names, if a text can have several.
    label_separator: str | None = None
    # The share of the training file that was held out, and the checksum of its texts.
    validation_split: float = 0.0
    validation_sha256: str | None = None
    # Only for an external ranker that is applied without training; see `TextEncoding`
    # and `packing.truncate_longer`.
    output_activation: str | None = None
    longer_keeps_more: bool = False

    @property
    def num_outputs(self) -> int:
        """The number of logits."""
        return max(1, len(self.labels))

    @property
    def is_pair(self) -> bool:
        """Whether an example is a pair of texts."""
        return self.text_b_column is not None

    @property
    def num_segments(self) -> int:
        """See `TaskRecord.num_segments`."""
        return 2 if self.is_pair else 1

    @property
    def truncate_pair(self) -> packing.TruncatePair:
        """How pairs that are too long are truncated."""
        longer, shorter = packing.truncate_longer, packing.truncate_pair
        return longer if self.longer_keeps_more else shorter

    def summary(self) -> str:
        """Returns one sentence that says what the model does."""
        texts = "a pair of texts" if self.is_pair else "a text"
        of_task = f" ({self.task_name.upper()})" if self.task_name else ""
        if self.label_kind == checkpoint_heads.REGRESSION:
            return f"Predicts a number for {texts}{of_task}."
        if self.label_kind == checkpoint_heads.MULTI_LABEL:
            return (
                f"Assigns {texts} to any number of {len(self.labels)} classes"
                f"{of_task}. A class is predicted if its probability is at least 0.5."
            )
        return f"Assigns {texts} to one of {len(self.labels)} classes{of_task}."

    def with_own_scores(self, source: source_module.Source) -> "Record":
        """Returns the record with which an external ranker computes its own scores.

        Raises:
            ValueError: it reads other lengths, or has a prompt.
        """
        text = source.text
        if text.output_activation is None:
            return self
        if self.max_seq_length != text.max_seq_length or text.prompt():
            raise ValueError(
                f"{source.path} reads up to {text.max_seq_length} word pieces and the "
                f"prompt {text.prompt()!r:.60}; pass --max_seq_length="
                f"{text.max_seq_length} for its own scores. With a prompt, use "
                "bert_tf retrieve --model=cross_encoder."
            )
        return dataclasses.replace(
            self, output_activation=text.output_activation, longer_keeps_more=True
        )

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> heads.TaskModel:
        """See `TaskRecord.create_model`.

        Fine-tuning adds only one linear layer with C x H weights, on the pooled vector
        of [CLS] (section 4.1 of the paper). The encoder is fine-tuned as a whole, so
        [CLS] learns to summarize what the task needs. A larger head would only
        add weights that have to be learned from few labels.
        """
        model_class = classifier.MODELS[self.label_kind]
        return model_class(config, num_labels=self.num_outputs, dtype=dtype)


def output_names(head: checkpoint_heads.Head, label_kind: str) -> tuple[str, ...]:
    """Returns names, or else numbers, of a classifier's outputs; () for one number."""
    if head.num_labels == 1 and label_kind == checkpoint_heads.REGRESSION:
        return ()
    return head.labels or tuple(map(str, range(head.num_labels or 0)))


def answers_of(logits: np.ndarray, record: Record) -> list[dict[str, Any]]:
    """Returns the answer for each example from the logits [N, C].

    For one class: `label`, and `probabilities` by class. For several classes: `labels`,
    the classes whose probability reaches `THRESHOLD`, and `probabilities`. For
    regression: `value`, a number or, for an external model with several, a list.
    """
    if record.label_kind == checkpoint_heads.REGRESSION:
        return [{"value": value} for value in predicted_of(logits, record).tolist()]
    outputs = classifier.MODELS[record.label_kind].answers(logits)
    answers = []
    for row in np.asarray(outputs["probabilities"]).tolist():
        by_name = dict(zip(record.labels, row, strict=True))
        answer: dict[str, Any] = {"label": max(record.labels, key=by_name.__getitem__)}
        if record.label_kind == checkpoint_heads.MULTI_LABEL:
            likely = [name for name, value in by_name.items() if value >= THRESHOLD]
            answer = {"labels": likely}
        answers.append(answer | {"probabilities": by_name})
    return answers


def predicted_of(logits: np.ndarray, record: Record) -> np.ndarray:
    """Returns the predictions as `features.label_columns` has the labels."""
    if record.label_kind == checkpoint_heads.REGRESSION:
        values = classifier.BertRegressor.answers(np.asarray(logits))["values"]
        return np.asarray(numerics.score_of(values, record.output_activation))
    if record.label_kind == checkpoint_heads.SINGLE_LABEL:
        return np.argmax(logits, axis=-1)
    answers = classifier.BertMultiLabelClassifier.answers(logits)
    return (np.asarray(answers["probabilities"]) >= THRESHOLD).astype(np.int32)


def release_lines(answers: Sequence[Mapping]) -> Iterator[str]:
    """Yields the lines of test_results.tsv in the release's format.

    There is no header, and one line per example: the probabilities in the order of the
    labels (or one number), separated by tabs.
    """
    for answer in answers:
        values = answer.get("value")
        if values is None:
            values = list(answer["probabilities"].values())
        # The release wrote the shortest digits that identify a float32.
        yield "\t".join(str(np.float32(value)) for value in np.ravel(values)) + "\n"


class Predictor(fine_tuning_predictor.Predictor):
    """A trained classifier; see `fine_tuning.predictor.Predictor`.

    An input is a text, or (text, second text) if the model was trained on pairs. For
    the answers see `answers_of`.
    """

    RECORD = Record
    # The least probability of a class, if a text can have several.
    THRESHOLD = THRESHOLD
    task: Record
    uses_pooler = True

    @classmethod
    def record_of_checkpoint(
        cls, settings: fine_tuning_predictor.LoadSettings
    ) -> Record:
        """See `Predictor.record_of_checkpoint`."""
        head, text = settings.source.head, settings.source.text
        labels = head.labels or ()
        if len(set(labels)) != len(labels):
            raise ValueError(
                f"{settings.source.path} has two classes of one name: "
                f"{', '.join(labels):.200}; give each its own name (id2label of "
                "config.json)."
            )
        return Record(
            labels=output_names(head, head.label_kind),
            label_kind=head.label_kind,
            output_activation=text.output_activation,
            longer_keeps_more=True,
            **settings.task_values(),
        )

    def items(self, inputs: Iterable[Any]) -> Sequence[Any]:
        """See `Predictor.items`."""
        items = given_data.read(inputs, "a list of texts")
        is_pair, trained_on = self.task.is_pair, "the model was trained on"
        if not self._settings.has_task_file and items:
            # A checkpoint without a run does not say whether it was trained on pairs.
            is_pair, trained_on = not isinstance(items[0], str), "the other inputs are"
        if is_pair:
            task_record.check_segments(self.config, 2)
        for index, item in enumerate(items):
            if not is_pair and not isinstance(item, str):
                raise ValueError(
                    f"Input {index} is {item!r:.60}, but {trained_on} single "
                    "texts; expected a string."
                )
            if is_pair and not _is_pair_of_texts(item):
                raise ValueError(
                    f"Input {index} is {item!r:.60}, but {trained_on} pairs; "
                    "expected (text, second text)."
                )
        return items

    def answers(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        """See `Predictor.answers`."""
        texts, texts_b = items, None
        if not isinstance(items[0], str):
            texts, texts_b = zip(*items, strict=True)
        lengths: list[int] = []
        packed = packing.pack(
            self.tokenizer,
            texts,
            texts_b=texts_b,
            max_seq_length=self.task.max_seq_length,
            truncate_pair=self.task.truncate_pair,
            lengths=lengths,
        )
        room = self.task.max_seq_length - (2 if texts_b is None else 3)
        self._num_truncated += sum(length > room for length in lengths)
        return answers_of(self._applied(self.apply, packed), self.task)


def _is_pair_of_texts(item):
    is_sequence = isinstance(item, tuple | list) and len(item) == 2
    return is_sequence and all(isinstance(text, str) for text in item)


class Teacher:
    """A trained classifier whose logits a student learns from, besides the labels.

    A label names one class. The teacher's probabilities ("soft targets") also say how
    plausible each of the other classes is for this text, which gives a small model more
    to learn from per example. A temperature above 1 flattens both distributions, so
    that the small probabilities contribute as well. The teacher reads the training
    texts once, before the first step, with its own vocabulary, casing and length. Its
    logits are then an ordinary column of the features, so batching, replicas and
    resuming need no special case.

    Source: Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network"
    (2015). The release's small models are meant to be trained this way (Turc et al.,
    2019).

    Args:
        run_dir: `output_dir` of its training run.
        record: of the student.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder contains no trained classifier, or teacher and student
            differ in their classes or in whether they read pairs.
    """

    def __init__(self, run_dir: str, record: Record):
        self._labels = record.labels
        if record.label_kind != checkpoint_heads.SINGLE_LABEL:
            raise ValueError(
                f"--teacher={run_dir}: the data has {record.label_kind} labels, but "
                "distillation requires one class per text."
            )
        self._predictor = Predictor.load(run_dir)
        trained = self._predictor.task
        if set(trained.labels) != set(record.labels):
            raise ValueError(
                f"--teacher={run_dir} has the classes {', '.join(trained.labels)}, but "
                f"the data has {', '.join(record.labels)}; expected the same classes."
            )
        if trained.is_pair != record.is_pair:
            kinds = {True: "pairs of texts", False: "single texts"}
            raise ValueError(
                f"--teacher={run_dir} was trained on {kinds[trained.is_pair]}, but the "
                f"data has {kinds[record.is_pair]}."
            )

    def logits(
        self,
        examples: Sequence[examples_module.InputExample],
        options: classification_options.RunClassifierOptions,
    ) -> np.ndarray:
        """Returns the teacher's logits [N, C], in the order of the student's classes.

        `options` are those of the student's run.
        """
        task = self._predictor.task
        rows = features_module.rows_of(examples, task, self._predictor.tokenizer)
        # The default strategy: one device, even if the student trains on several.
        logits = training_evaluation.Evaluation(
            self._predictor.model,
            tf.distribute.get_strategy(),
            dataclasses.replace(options, eval_batch_size=options.train_batch_size),
            length_buckets=options.length_buckets,
        ).predict(batching.ArraySource(rows.columns), keys=("logits",))["logits"]
        order = [task.labels.index(label) for label in self._labels]
        return logits[:, order]
