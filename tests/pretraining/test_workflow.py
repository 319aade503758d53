"""What a run reads, beyond what the tests of the tool see."""

import dataclasses
import math
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import files
from bert_tf.data import remote_blocks
from bert_tf.data import tfrecord
from bert_tf.pretraining import examples as pretraining_examples
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import scores
from bert_tf.pretraining import workflow as pretraining_workflow
from tests import runs
from tests.data import store_double


@pytest.fixture
def recorded_options(golden, tmp_path):
    """Returns options for the recorded model and records; keywords replace or add."""

    def create(**values):
        model = golden / "model"
        defaults = {
            "input_file": str(model / "examples.tfrecord"),
            "output_dir": str(tmp_path / "run"),
            "init_checkpoint": str(model / "bert_model.ckpt"),
            "bert_config_file": str(model / "bert_config.json"),
            "vocab_file": str(golden / "vocab.txt"),
            "max_seq_length": 64,
            "max_predictions_per_seq": 10,
            "train_batch_size": 2,
            "eval_batch_size": 2,
            "num_train_steps": 1,
            "num_warmup_steps": 0,
            "max_eval_steps": 1,
        }
        return pretraining_options.RunPretrainingOptions(**defaults | values)

    return create


REMOTE = {"input_file": "store://examples.tfrecord", "do_train": True}


@pytest.mark.slow
def test_a_run_on_remote_records_does_not_resume_on_local_ones(
    golden, recorded_options, monkeypatch
):
    store = store_double.ObjectStore(golden / "model")
    monkeypatch.setattr(files, "_gfile", lambda: store)
    options = recorded_options(**REMOTE)
    pretraining_workflow.run(options)
    local = dataclasses.replace(
        options,
        input_file=str(golden / "model" / "examples.tfrecord"),
        num_train_steps=2,
    )
    with pytest.raises(ValueError, match=r"remote files in 16 b.* from the same"):
        pretraining_workflow.run(local)


@pytest.mark.slow
def test_a_run_whose_remote_file_changed_stops_and_can_be_resumed(
    golden, recorded_options, tmp_path, monkeypatch
):
    store = store_double.ObjectStore(tmp_path / "store")
    shutil.copytree(golden / "model", tmp_path / "store")
    monkeypatch.setattr(files, "_gfile", lambda: store)
    monkeypatch.setattr(remote_blocks, "BLOCK_BYTES", 1)  # One record per block.
    read_block = remote_blocks.BlockReader._read_block

    def changed_at_row_8(reader, rows):
        if rows.start == 8:
            os.utime(tmp_path / "store" / "examples.tfrecord", (1e9, 1e9))
        return read_block(reader, rows)

    monkeypatch.setattr(remote_blocks.BlockReader, "_read_block", changed_at_row_8)
    options = recorded_options(
        **REMOTE, num_train_steps=5, shuffle_buffer_size=1, save_checkpoints_steps=1
    )
    with pytest.raises(ValueError, match=r"examples\.tfrecord has changed since"):
        pretraining_workflow.run(options)
    assert "Trained to step 5" in pretraining_workflow.run(options)


def test_an_evaluation_whose_loss_is_nan_writes_no_results(recorded_options, tmp_path):
    options = recorded_options(do_eval=True)
    pretraining = pretraining_workflow.Pretraining(options)
    weight = pretraining.trainer.model.trainable_weights[-1]
    weight.assign(np.full(weight.shape, np.nan))
    with pytest.raises(ValueError, match="loss of the evaluation is nan, so no "):
        pretraining.evaluate()
    assert not os.path.exists(tmp_path / "run" / "eval_results.txt")


@pytest.mark.slow
def test_a_checkpoint_that_unlearns_is_noticed(recorded_options, tmp_path, caplog):
    options = recorded_options(
        learning_rate=0.5,
        num_train_steps=2,
        eval_every_steps=1,
        do_train=True,
        do_eval=True,
    )
    report = pretraining_workflow.run(options)
    logged = [x for x in runs.metrics(tmp_path / "run") if "eval_loss" in x]
    evaluated = {line["step"]: line["eval_masked_lm_loss"] for line in logged}
    assert sorted(evaluated) == [0, 1, 2]
    assert evaluated[1] > evaluated[0]
    message = (
        f"The held-out masked_lm_loss is {{:.4f}}, but {evaluated[0]:.4f} before the "
        "first step: the model has unlearned. Use a --learning_rate below 0.5 or "
        "--bias_correction."
    )
    assert caplog.messages.count(message.format(evaluated[1])) == 1
    assert message.format(evaluated[2]) in report.splitlines()
    # A resumed run compares with the same start, and does not evaluate it again.
    longer = dataclasses.replace(options, num_train_steps=3)
    assert f"but {evaluated[0]:.4f} before" in pretraining_workflow.run(longer)


def rewritten(path, target, change):
    """Returns records written again, without a side file, with other columns."""
    with tf.io.TFRecordWriter(str(target)) as writer:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            example = tf.train.Example.FromString(record)
            change(example.features.feature)
            writer.write(example.SerializeToString())
    return tfrecord.RecordFiles([target])


def test_further_columns_of_other_programs_are_left_out_as_in_2018(
    golden, tmp_path, caplog
):
    def add(columns):
        columns["doc_id"].int64_list.value.append(7)

    path = golden / "default.tfrecord"
    changed = rewritten(path, tmp_path / "a.tfrecord", add)
    source = pretraining_examples.record_source(changed)
    expected = pretraining_examples.record_source(tfrecord.RecordFiles([path]))
    assert set(source.columns) == set(expected.columns)
    assert "columns that training does not read: doc_id" in caplog.text


def test_a_mask_under_another_name_is_not_left_out(golden, tmp_path):
    def rename(columns):
        columns["attention_mask"].CopyFrom(columns["input_mask"])
        del columns["input_mask"]

    path = golden / "default.tfrecord"
    changed = rewritten(path, tmp_path / "a.tfrecord", rename)
    with pytest.raises(ValueError, match=r"column input_mask, only .*attention_mask"):
        pretraining_examples.record_source(changed)


class Records:
    """Records in memory."""

    def __init__(self, *records):
        self._records = [
            {name: np.array(values) for name, values in record.items()}
            for record in records
        ]
        self.num_records = len(records)
        self.schema = self._records[0]
        self.is_remote = False

    def read(self, indices):
        return [self._records[index] for index in indices]

    def decode(self, record, index):
        return record


def _record(ids, weights, label):
    return {
        "masked_lm_ids": ids,
        "masked_lm_weights": weights,
        "next_sentence_labels": [label],
    }


def test_masked_words_are_predicted_from_their_training_frequencies():
    trained = Records(_record([7, 7, 0], [1.0, 1.0, 0.0], 0))
    evaluated = Records(_record([7, 5, 0], [1.0, 1.0, 0.0], 0), _record([7], [1.0], 1))
    found = scores.record_baselines(trained, evaluated, vocab_size=10)
    # 12 counts: 3 of id 7 (two and one added), one of every other id.
    loss = -(2 * math.log(3 / 12) + math.log(1 / 12)) / 3
    assert found["eval_masked_lm_loss"]["value"] == pytest.approx(loss)
    assert found["eval_perplexity"]["value"] == pytest.approx(math.exp(loss))
    assert found["eval_masked_lm_accuracy"]["value"] == pytest.approx(2 / 3)
    assert found["eval_next_sentence_accuracy"]["value"] == 0.5
    assert found["eval_next_sentence_loss"]["value"] == pytest.approx(math.log(2))
