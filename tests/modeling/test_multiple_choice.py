"""The choice model: every ending is scored by itself, by one vector."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import multiple_choice as modeling_multiple_choice
from bert_tf.modeling.kernels import dropout_masks
from tests.modeling import small_config

SMALL = small_config.create()
# Two examples, three endings, four pieces.
IDS = np.array(
    [
        [[2, 7, 9, 3], [2, 7, 8, 3], [2, 7, 3, 0]],
        [[2, 5, 9, 3], [2, 5, 8, 3], [2, 5, 9, 3]],
    ],
    "int32",
)
FEATURES = {
    "input_ids": IDS,
    "input_mask": (IDS > 0).astype("int32"),
    "segment_ids": np.zeros_like(IDS),
    "label_ids": np.array([2, 0], "int32"),
}


def test_the_order_of_the_endings_changes_nothing_but_the_order_of_the_scores():
    model = modeling_multiple_choice.BertMultipleChoice(SMALL)
    outputs = model(FEATURES)
    turned = model({name: FEATURES[name][:, ::-1] for name in ("input_ids",)})
    whole = model({"input_ids": IDS})
    np.testing.assert_allclose(
        turned["logits"], whole["logits"].numpy()[:, ::-1], atol=1e-6
    )
    assert outputs["logits"].shape == (2, 3)
    np.testing.assert_allclose(
        tf.reduce_sum(outputs["probabilities"], axis=1), [1, 1], rtol=1e-6
    )
    # Equal endings of an example have equal scores.
    np.testing.assert_allclose(whole["logits"][1, 0], whole["logits"][1, 2], atol=1e-6)


def test_every_ending_has_its_own_dropout_whatever_the_batch_it_came_in():
    large_weights = dataclasses.replace(SMALL, initializer_range=0.5)
    model = modeling_multiple_choice.BertMultipleChoice(large_weights)
    keys = dropout_masks.keys_of_examples(1, 2, np.arange(2, dtype="int32"))
    whole = model(FEATURES, training=True, dropout_keys=keys)["logits"].numpy()
    assert abs(whole[1, 0] - whole[1, 2]) > 1e-3  # Equal texts, other masks.
    second = {name: column[1:] for name, column in FEATURES.items()}
    alone = model(second, training=True, dropout_keys=keys[1:])["logits"]
    np.testing.assert_allclose(alone, whole[1:], atol=1e-6)


def test_features_without_an_axis_of_endings_are_refused():
    model = modeling_multiple_choice.BertMultipleChoice(SMALL)
    with pytest.raises(ValueError, match=r"2 axes; expected 3: \[examples, endings"):
        model({"input_ids": IDS[:, 0]})
