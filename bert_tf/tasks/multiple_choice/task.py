"""The declaration of multiple choice: its record, data, scores and answers."""

import dataclasses
import functools
import logging
import os
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task as task_module
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import kernels
from bert_tf.modeling import multiple_choice
from bert_tf.modeling import numerics
from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import features
from bert_tf.tasks.multiple_choice import options as multiple_choice_options
from bert_tf.training import plots

logger = logging.getLogger(__name__)

RELEASE_FILE = "test_results.tsv"
# Among so many examples, the first ending is the right one at least once.
_MANY_EXAMPLES = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(examples_module.Columns, task_record.TaskRecord):
    """How to apply a multiple choice model to new texts.

    The columns are those of the training tables, and the defaults for other tables.
    """

    KIND = "multiple_choice"

    num_endings: int  # Of each training example.

    @property
    def num_segments(self) -> int:
        return 2

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> multiple_choice.BertMultipleChoice:
        return multiple_choice.BertMultipleChoice(config, dtype=dtype)


class Predictor(fine_tuning_predictor.Predictor):
    """A trained multiple choice model; see `fine_tuning.predictor.Predictor`.

    An input is (start, endings), where endings are two or more texts. For the answers
    see `_answer`.
    """

    RECORD = Record
    uses_pooler = True

    @classmethod
    def record_of_checkpoint(
        cls, settings: fine_tuning_predictor.LoadSettings
    ) -> Record:
        least = examples_module.MIN_ENDINGS
        return Record(num_endings=least, **settings.task_values())

    def items(self, inputs: Iterable[Any]) -> Sequence[Any]:
        items = given_data.read(inputs, "a list of (start, endings)")
        least = examples_module.MIN_ENDINGS
        for index, item in enumerate(items):
            if not _is_choice(item):
                raise ValueError(
                    f"Input {index} is {item!r:.60}; expected (start, endings): a text "
                    f"and a list of {least} or more texts, all non-empty."
                )
        return items

    def outputs(self, features: Any) -> Any:
        """See `Predictor.outputs`. Each ending is scored by itself, so inputs may have
        any number of endings."""
        return self.model.scores(features)

    def answers(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        starts, endings = zip(*items, strict=True)
        length = self.task.max_seq_length
        lengths: list[int] = []
        packed = features.pack_endings(
            self.tokenizer, starts, endings, max_seq_length=length, lengths=lengths
        )
        borders = np.cumsum([len(texts) for texts in endings])[:-1]
        for row in np.split(np.array(lengths), borders):
            self._num_truncated += bool(np.any(row > length - 3))
        ending_scores = self._applied(self.apply, packed)
        return [
            _answer(np.asarray(numerics.softmax(row)), texts)
            for row, texts in zip(
                np.split(ending_scores, borders), endings, strict=True
            )
        ]


class MultipleChoice(task_module.Task):
    """Which ending continues a text? SWAG, CODAH, your own tables."""

    RECORD = Record
    PREDICTOR = Predictor
    PIPELINE_TAG = "multiple-choice"

    options: multiple_choice_options.RunSwagOptions
    # Of all examples, because shapes are static and the loss of the model was trained
    # for that number of choices. The first row that is read decides.
    num_endings: int | None = None

    @functools.cached_property
    def columns(self) -> examples_module.Columns:
        """The columns of the data; by default, those of a trained model."""
        options = self.options
        if options.data_dir is not None:
            return examples_module.layout_of(options.data_dir)[1]
        return task_record.columns_of(examples_module.Columns, options, self.trained)

    def paths(self) -> dict[str, str | None]:
        options = self.options
        if options.data_dir is None:
            return super().paths()
        names, _ = examples_module.layout_of(options.data_dir)
        paths = (os.path.join(options.data_dir, name) for name in names)
        return dict(zip(("train", "dev", "test"), paths, strict=True))

    def read_set(
        self, name: str, path: str, *, broken_rows: list[str] | None = None
    ) -> list[examples_module.ChoiceExample]:
        if self.num_endings is None and self.trained:
            self.num_endings = self.trained.num_endings
        columns = self.columns.without_label() if name == "test" else self.columns
        examples = examples_module.read_examples(
            path,
            columns,
            name,
            num_endings=self.num_endings,
            broken_rows=broken_rows,
        )
        if examples:
            self.num_endings = len(examples[0].endings)
        first = min((one.label or 0 for one in examples), default=0)
        if name == "train" and first > 0 and len(examples) >= _MANY_EXAMPLES:
            logger.warning(
                "%s: none of the %d labels is below %d, but they are counted from 0; "
                "subtract 1 if the first ending has the label 1.",
                path,
                len(examples),
                first,
            )
        return examples

    def new_record(self) -> Record:
        least = examples_module.MIN_ENDINGS
        return self.create_record(self.columns, num_endings=self.num_endings or least)

    def check_head(self, head: checkpoint_heads.Head) -> None:
        # Without a task.json, a head with one output is assumed to be a classifier's.
        if head.is_known or head.num_labels != 1:
            super().check_head(head)

    @property
    def num_special(self) -> int:
        return 3  # [CLS], and [SEP] after the start and after the ending.

    def counts(self) -> dict[str, int]:
        return super().counts() | {"Num endings": self.record.num_endings}

    def convert(self, name: str) -> packing.Rows:
        return features.convert_examples_to_features(
            self.examples[name], self.record.max_seq_length, self.tokenizer
        )

    def training_facts(self) -> tuple[str, ...]:
        labels = (str(example.label) for example in self.examples["train"])
        described = text_checks.balance(labels)
        return (f"Correct endings of the training examples: {described}.",)

    def evaluate(self, predict: task_module.Predict) -> task_module.Evaluation:
        """See `Task.evaluate`."""
        logits = self.outputs(predict, "dev")  # [N, C], C endings
        label_ids = self.features("dev").columns["label_ids"]
        losses = np.asarray(kernels.current().cross_entropy(logits, label_ids))
        is_right = label_ids == np.argmax(logits, axis=-1)
        return task_module.Evaluation(
            scores={
                "eval_accuracy": float(np.mean(is_right)),
                "eval_loss": float(np.mean(losses, dtype=np.float64)),
            },
        )

    def plot_data(self, evaluation: task_module.Evaluation) -> dict[str, Any]:
        label_ids = self.features("dev").columns["label_ids"]
        share = float(np.max(np.bincount(label_ids)) / len(label_ids))
        baseline = plots.baseline(plots.MAJORITY_CLASS, share)
        return {"baselines": {"eval_accuracy": baseline}}

    def predict(self, predict: task_module.Predict) -> task_module.Predicted:
        probabilities = self.outputs(predict, "test", "probabilities")
        # As the release's run_classifier.py writes the probabilities of classes.
        lines = ("\t".join(map(str, row)) + "\n" for row in probabilities)
        examples = self.examples["test"]
        answers = [
            _answer(row, example.endings)
            for example, row in zip(examples, probabilities, strict=True)
        ]
        ids = ({"id": example.guid} for example in examples)
        records = (a | b for a, b in zip(ids, answers, strict=True))
        return task_module.Predicted(
            files={
                RELEASE_FILE: lines,
                task_module.PREDICTIONS_FILE: task_module.json_lines(records),
            },
        )

    def summary(self) -> str:
        return (
            f"Chooses the most plausible of {self.record.num_endings} endings for the "
            "start of a text."
        )

    def item(self, example: examples_module.ChoiceExample) -> text_checks.Item:
        label = None if example.label is None else str(example.label)
        return text_checks.Item(
            texts=(example.start, *example.endings),
            label=label,
            place=example.place or example.guid,
        )

    def row_lengths(self, lengths: np.ndarray) -> np.ndarray:
        """See `Task.row_lengths`: each ending with its start."""
        return np.max(lengths[:, :1] + lengths[:, 1:], axis=1)

    @classmethod
    def give_data(cls, run: Any, train: Any, validation: Any) -> None:
        rows, path = _rows(run, train), given_data.file_path(train)
        if given_data.is_share(validation):
            texts = [[str(row.get(examples_module.START_COLUMN))] for row in rows]
            rows, held_out = run.divided(rows, texts, validation)
            path = None
        elif validation is not None:
            held_out = _rows(run, validation)
        run.values["train_file"] = path or _table(run, rows, "train", trains=True)
        if validation is not None:
            path = given_data.file_path(validation)
            path = path or _table(run, held_out, "validation", trains=False)
            run.values |= {"eval_file": path, "do_eval": True}


def _is_choice(item):
    if not (isinstance(item, tuple | list) and len(item) == 2):
        return False
    start, endings = item
    is_list = isinstance(endings, tuple | list)
    if not is_list or len(endings) < examples_module.MIN_ENDINGS:
        return False
    return all(isinstance(text, str) and text.strip() for text in (start, *endings))


def _rows(run, data):
    """Returns the rows of a table of endings."""
    columns = examples_module.START_COLUMN, examples_module.LIST_COLUMN
    forms = ((*columns, run.option("label_column") or "label"),)
    return given_data.rows_of(data, forms, lists=columns[1:])


def _table(run, rows, name, *, trains):
    """Returns the path of a table of endings."""
    endings = [examples_module.LIST_COLUMN]
    if endings[0] not in rows[0]:
        endings = examples_module.numbered(rows[0])
    columns = (examples_module.START_COLUMN, *endings)
    columns = (*columns, run.option("label_column") or "label")
    content = given_data.json_lines(rows, columns)
    return run.add_file(f"{name}.jsonl", content, trains=trains)


def _answer(probabilities: np.ndarray, endings: Sequence[str]) -> dict[str, Any]:
    """Returns the answer for one example.

    Args:
        probabilities: float [C].
        endings: C texts.

    Returns:
        `label`: number of the most probable ending, as a string like all labels.
        `ending`: its text. `probabilities`: by number.
    """
    chosen = int(np.argmax(probabilities))
    return {
        "label": str(chosen),
        "ending": endings[chosen],
        "probabilities": {str(i): float(p) for i, p in enumerate(probabilities)},
    }
