import math

import numpy as np
import pytest

from bert_tf.pretraining import scores


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
