import json
import math

import numpy as np
import pytest

from bert_tf import files
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.pretraining import scores
from bert_tf.training import plot_data
from bert_tf.training import result_files
from bert_tf.training import run_folder
from tests.data import store_double


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


def test_records_without_masks_have_no_baselines():
    records = Records({"input_ids": [1]})
    assert scores.record_baselines(records, records, vocab_size=10) == {}


def test_remote_records_take_few_requests(tmp_path, monkeypatch):
    schema = schema_module.pretraining(8, 2)
    columns = {
        column.name: np.ones((5000, column.length) if column.length else 5000, int)
        for column in schema.columns
    }
    with tfrecord.Writer(tmp_path / "train", schema) as writer:
        writer.write(columns)
    store = store_double.ObjectStore(tmp_path)
    monkeypatch.setattr(files, "_gfile", lambda: store)
    records = tfrecord.RecordFiles(["store://train"])
    with store.counted() as requests:
        found = scores.record_baselines(records, records, vocab_size=10)
    assert len(requests) < 200
    assert found["eval_masked_lm_accuracy"]["value"] == 1.0


@pytest.mark.parametrize(
    "is_chief, evaluated, is_read",
    [(True, "dev", True), (False, "dev", False), (True, "other", False)],
)
def test_only_what_is_written_is_read(tmp_path, is_chief, evaluated, is_read):
    entry = {"name": "dev", "checksum": None}
    record = {"results": {run_folder.EVAL_RESULTS_FILE: entry}}
    (tmp_path / "run.json").write_text(json.dumps(record))
    records, read = Records(_record([7], [1.0], 0)), []
    read_records = records.read
    records.read = lambda indices: read.append(indices) or read_records(indices)
    scores.write_baselines(
        run_folder.RunFolder(str(tmp_path), is_written=is_chief),
        records,
        records,
        vocab_size=10,
        data_set=result_files.DataSet(name=evaluated),
    )
    assert bool(read) == bool(plot_data.read(str(tmp_path))) == is_read
