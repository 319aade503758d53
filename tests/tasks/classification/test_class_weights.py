"""Weights of classes: given, balanced, and in the loss."""

import numpy as np
import pytest

from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import loss

ONE = features_module.Record(
    labels=("rain", "sun"), max_seq_length=8, do_lower_case=True
)
SEVERAL = features_module.Record(
    labels=("rain", "wind"),
    max_seq_length=8,
    do_lower_case=True,
    label_kind="multi_label",
    label_separator=",",
)


def rows(*labels):
    return [examples_module.InputExample(guid="x", text_a="a", label=x) for x in labels]


@pytest.mark.parametrize(
    "of, given, labels, weights",
    [
        (ONE, (), ("rain", "sun"), None),
        (ONE, ("rain=3",), ("rain", "sun"), {"rain": 3.0, "sun": 1.0}),
        # 4 / (2 · 1) and 4 / (2 · 3): both classes count 2 in all.
        (
            ONE,
            ("balanced",),
            ("rain", "sun", "sun", "sun"),
            {"rain": 2.0, "sun": 2 / 3},
        ),
        # Having the class counts as much as not having it: 3 / 1 and 2 / 2.
        (
            SEVERAL,
            ("balanced",),
            ("rain,wind", "wind", "", ""),
            {"rain": 3.0, "wind": 1.0},
        ),
    ],
)
def test_classes_have_their_weights(of, given, labels, weights):
    assert loss.class_weights(given, of, rows(*labels)) == weights


@pytest.mark.parametrize(
    "given, message",
    [
        (("rain",), "expected 'balanced', or NAME=WEIGHT with a positive"),
        (("rain=0",), "positive weight, got 'rain=0'"),
        (("snow=2",), "unknown class 'snow'; the classes are rain, sun"),
        (("balanced",), "no training example has the class 'sun'"),
    ],
)
def test_weights_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        loss.class_weights(given, ONE, rows("rain", "rain"))


def test_a_weight_counts_like_as_many_examples():
    small = config_module.BertConfig(
        vocab_size=9,
        hidden_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=4,
        max_position_embeddings=4,
    )
    one = classifier.BertClassifier(small, num_labels=2)
    logits = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    columns = features_module.label_columns(
        rows("rain", "sun"), ONE, {"rain": 3.0, "sun": 1.0}
    )
    weighted = {"input_ids": np.ones((2, 4), np.int32), **columns}
    repeated = {
        "input_ids": np.ones((4, 4), np.int32),
        "label_ids": np.array([0, 0, 0, 1]),
    }
    np.testing.assert_allclose(
        one.total_loss(weighted, {"logits": logits}),
        one.total_loss(repeated, {"logits": logits[[0, 0, 0, 1]]}),
        rtol=1e-6,
    )


def test_in_several_classes_the_weight_is_of_having_the_class():
    columns = features_module.label_columns(
        rows("rain", "wind", ""), SEVERAL, {"rain": 3.0, "wind": 2.0}
    )
    assert columns["label_indicators"].tolist() == [[1, 0], [0, 1], [0, 0]]
    assert columns["label_weights"].tolist() == [[3, 1], [1, 2], [1, 1]]
