"""A new task needs its declaration and one line in the table of tasks, no more."""

import dataclasses
import itertools
from typing import ClassVar

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import kinds
from bert_tf.data import packing
from bert_tf.data import tables
from bert_tf.data import text_checks
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import task as task_module
from bert_tf.fine_tuning import task_record
from bert_tf.fine_tuning import tasks
from bert_tf.modeling import classifier
from bert_tf.options import option
from tests import runs

KIND = "bees"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(fine_tuning_options.TaskOptions):
    TASK: ClassVar[str] = KIND

    max_seq_length: int = option(16, help="Pieces per text.")
    do_lower_case: bool | None = option(True, help="Lowercase the text.")
    predict_batch_size: int = option(8, help="Texts per prediction step.")
    train_file: str | None = option(None, help="Table with text and label.")
    eval_file: str | None = option(None, help="Table with text and label.")
    predict_file: str | None = option(None, help="Table with text.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(task_record.TaskRecord):
    KIND = KIND

    def create_model(self, config, *, dtype=None):
        return classifier.BertClassifier(config, num_labels=2, dtype=dtype)


class Predictor(fine_tuning_predictor.Predictor):
    RECORD = Record

    def items(self, inputs):
        texts = given_data.read(inputs, "a list of texts")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"Expected a list of texts, got {texts!r:.60}.")
        return texts

    def outputs(self, features):
        return self.model(features)["probabilities"]

    def answers(self, items):
        length = self.task.max_seq_length
        rows = packing.pack(self.tokenizer, items, max_seq_length=length)
        return [answer(row) for row in self._applied(self.apply, rows)]


class Bees(task_module.Task):
    """Is a text about bees?"""

    RECORD = Record
    PREDICTOR = Predictor
    PIPELINE_TAG = "text-classification"

    def check_head(self, head):
        # A finished run of this task has the head of a classifier.
        if (head.kind, head.num_labels) != (kinds.Head.CLASSIFICATION, 2):
            super().check_head(head)

    def read_set(self, name, path, *, broken_rows=None):
        columns = ("text",) if name == "test" else ("text", "label")
        return list(tables.read_table(path, columns, broken_rows=broken_rows))

    def convert(self, name):
        rows = self.examples[name]
        texts = [row.cells["text"] for row in rows]
        length, lengths = self.record.max_seq_length, []
        columns = packing.pack(
            self.tokenizer, texts, max_seq_length=length, lengths=lengths
        )
        columns["label_ids"] = np.array([*map(label_id, rows)], np.int32)
        return packing.Rows(columns=columns, lengths=np.array(lengths))

    def evaluate(self, predict):
        label_ids = self.features("dev").columns["label_ids"]
        chosen = self.outputs(predict, "dev").argmax(axis=-1)
        accuracy = float(np.mean(chosen == label_ids))
        return task_module.Evaluation(scores={"eval_accuracy": accuracy})

    def plot_data(self, evaluation):
        return {}

    def predict(self, predict):
        rows = self.outputs(predict, "test", "probabilities")
        lines = task_module.json_lines(map(answer, rows))
        return task_module.Predicted(files={task_module.PREDICTIONS_FILE: lines})

    def summary(self):
        return "Finds texts about bees."

    def item(self, example):
        return text_checks.Item(
            texts=(example.cells["text"],),
            label=example.cells.get("label"),
            place=example.place,
        )


def label_id(row):
    label = row.cells.get("label", "0")
    if label not in ("0", "1"):
        raise ValueError(f"{row.place}: the label is {label!r}; expected 0 or 1.")
    return int(label)


def answer(probabilities):
    return {"is_about_bees": bool(probabilities[1] > 0.5)}


@pytest.fixture
def options(monkeypatch, tmp_path, golden, quick_config):
    entry = tasks.Entry(
        task=f"{__name__}:Bees", options=f"{__name__}:Options", signatures=""
    )
    monkeypatch.setitem(tasks.TASKS, KIND, entry)
    words = ("bee", "lamp", "baker", "river")
    pairs = itertools.product(words, repeat=2)
    rows = [f"{one} {other}\t{int('bee' in (one, other))}" for one, other in pairs]
    table = tmp_path / "rows.tsv"
    table.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return Options(
        train_file=str(table),
        eval_file=str(table),
        predict_file=str(table),
        output_dir=str(tmp_path / "run"),
        bert_config_file=quick_config,
        vocab_file=str(golden / "vocab.txt"),
        learning_rate=1e-2,
        train_batch_size=8,
        num_train_epochs=20.0,
        do_train=True,
        do_eval=True,
        do_predict=True,
    )


def test_the_runner_trains_evaluates_applies_and_loads_a_new_task(options, tmp_path):
    report = fine_tuning_run.run(options)
    run_dir = tmp_path / "run"
    assert "eval_accuracy = 1.0" in report
    lines = runs.json_lines(run_dir / "predictions.jsonl")
    answers = [line["is_about_bees"] for line in lines]
    assert answers == [True] * 4 + [True, False, False, False] * 3
    assert "texts about bees" in (run_dir / "README.md").read_text()
    predicted = bert_tf.load(str(run_dir)).predict(["lamp baker", "bee lamp"])
    assert [one["is_about_bees"] for one in predicted] == [False, True]

    again = dataclasses.replace(
        options,
        init_checkpoint=str(run_dir),
        output_dir=str(tmp_path / "applied"),
        do_train=False,
        do_predict=False,
    )
    assert "eval_accuracy = 1.0" in fine_tuning_run.run(again)


def test_the_data_of_a_new_task_is_checked(options):
    check = dataclasses.replace(
        options, check=True, do_train=False, do_eval=False, do_predict=False
    )
    assert "labels" in str(fine_tuning_run.run(check))
