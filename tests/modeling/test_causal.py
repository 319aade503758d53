"""Causal attention: what a position sees, and which vector represents a sequence."""

import dataclasses

import numpy as np
import pytest

from bert_tf.modeling import bert
from bert_tf.modeling.kernels import dropout_masks
from tests import ring
from tests.modeling import small_config

CAUSAL = small_config.create(num_hidden_layers=2, attention="causal")
IDS = np.array([[2, 7, 9, 11, 3], [2, 5, 3, 0, 0]], "int32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")


@pytest.mark.parametrize("place", ring.quick(1, 4, of=(1, 2, 3, 4)))
@pytest.mark.parametrize("training", [False, True])
def test_no_vector_depends_on_a_later_piece(place, training):
    model = bert.BertModel(CAUSAL)
    keys = dropout_masks.keys_of_examples(1, 2, np.arange(2)) if training else None

    def vectors(ids):
        features = {"input_ids": ids, "input_mask": MASK}
        return np.asarray(
            model(features, training=training, dropout_keys=keys)["sequence_output"]
        )

    other = IDS.copy()
    other[:, place:] = 20
    before, after = vectors(IDS), vectors(other)
    np.testing.assert_array_equal(before[:, :place], after[:, :place])
    assert np.abs(before[0, place:] - after[0, place:]).min(axis=-1).max() > 1e-3
    both_ways = bert.BertModel(dataclasses.replace(CAUSAL, attention="bidirectional"))
    seen = [both_ways({"input_ids": ids})["sequence_output"][0] for ids in (IDS, other)]
    assert np.abs(seen[0][:place] - seen[1][:place]).max() > 1e-4


def test_the_pooled_vector_is_of_the_last_real_piece():
    model = bert.BertModel(CAUSAL)
    outputs = model({"input_ids": IDS, "input_mask": MASK})
    last = np.asarray(outputs["sequence_output"])[[0, 1], [4, 2]]
    expected = np.tanh(
        last @ np.asarray(model.pooler.dense.kernel) + model.pooler.dense.bias
    )
    np.testing.assert_allclose(outputs["pooled_output"], expected, atol=1e-6)
