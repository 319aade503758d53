"""BertClassifier: names, head and losses."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module
from bert_tf.modeling.kernels import dropout_masks
from tests.modeling import small_config

SMALL = small_config.create()
FEATURES = {**small_config.FEATURES, "label_ids": np.array([2, 0], "int32")}


@pytest.mark.parametrize(
    "name, num_labels",
    [("BertClassifier", 3), ("BertTokenClassifier", 5), ("BertMultipleChoice", 1)],
)
def test_checkpoint_names_are_the_encoders_and_two_at_the_top(name, num_labels, golden):
    folder = golden / "model"
    read = config_module.BertConfig.from_json_file(folder / "bert_config.json")
    arguments = {} if num_labels == 1 else {"num_labels": num_labels}
    model = getattr(bert_tf, name)(read, **arguments)
    shapes = {
        name: tuple(weight.shape)
        for name, weight in checkpoint_names.checkpoint_variables(model).items()
    }
    recorded = bundle.read_names_and_shapes(folder / "bert_model.ckpt").items()
    encoder = {key: tuple(shape) for key, shape in recorded if key.startswith("bert/")}
    # create_model of run_classifier.py, 2018, made both without a scope.
    assert shapes == {
        **encoder,
        "output_weights": (num_labels, read.hidden_size),
        "output_bias": (num_labels,),
    }
    if arguments:
        with pytest.raises(ValueError, match="num_labels must be at least 1, got 0"):
            getattr(bert_tf, name)(read, num_labels=0)


def test_scores_are_a_linear_function_of_the_pooled_output():
    model = classifier.BertClassifier(SMALL, num_labels=3)
    outputs = model(FEATURES)
    pooled = np.asarray(model.bert(FEATURES)["pooled_output"])
    model_bias = np.asarray(model.output_bias)
    expected = pooled @ np.asarray(model.output_weights).T + model_bias
    np.testing.assert_allclose(outputs["logits"], expected, atol=1e-6)
    exponents = np.exp(expected)
    np.testing.assert_allclose(
        outputs["probabilities"],
        exponents / exponents.sum(-1, keepdims=True),
        atol=1e-6,
    )


def test_loss_and_accuracy_are_those_of_the_labels():
    model = classifier.BertClassifier(SMALL, num_labels=3)
    outputs = {"logits": tf.constant([[1.0, 2.0, 3.0], [0.0, 4.0, 0.0]])}
    logits = outputs["logits"].numpy()
    losses = np.log(np.exp(logits).sum(-1)) - logits[[0, 1], [2, 0]]
    loss = float(model.total_loss(FEATURES, outputs))
    np.testing.assert_allclose(loss, losses.mean(), rtol=1e-6)
    hits, weight = model.metric_sums(FEATURES, outputs)["accuracy"]
    assert (float(hits), float(weight)) == (1, 2)


@pytest.mark.parametrize("name", ["BertClassifier", "BertMultipleChoice"])
def test_the_pooled_output_is_dropped_out_whatever_the_configuration_says(
    name, monkeypatch
):
    rates = {}

    def record(x, dropout, **settings):
        rates[dropout.site] = dropout.rate
        return x

    monkeypatch.setattr(dropout_masks, "dropped", record)
    ids = np.stack([FEATURES["input_ids"]] * 2, axis=1)  # Two endings.
    model = bert_tf.BertMultipleChoice(SMALL)
    if name == "BertClassifier":
        model, ids = bert_tf.BertClassifier(SMALL, num_labels=2), ids[:, 0]
    keys = dropout_masks.keys_of_examples(0, 0, np.arange(2, dtype="int32"))
    model({"input_ids": ids}, training=True, dropout_keys=keys)
    assert rates.pop(max(rates)) == 0.1
    assert len(rates) == 4
