"""A checkpoint into a model: what is read, what is reported, what is refused."""

import dataclasses
import logging
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.modeling import bert
from bert_tf.modeling import classifier as classification
from bert_tf.modeling import config as config_module
from bert_tf.modeling import token_classifier
from bert_tf.training import saving


@pytest.fixture
def config(released):
    return config_module.BertConfig.from_json_file(released / "bert_config.json")


@pytest.fixture
def model(config):
    return bert.BertModel(config)


def test_a_released_checkpoint_is_read_and_reported(released, model):
    report = loading.load_checkpoint(model, released / "bert_model.ckpt")
    assert len(report.read) == len(model.weights)
    assert report.missing == ()
    assert report.optimizer == ("global_step",)
    assert "cls/predictions/output_bias" in report.left_over
    assert f"{len(model.weights)} weights read" in str(report)
    assert "in it, but not in the model: cls/" in str(report)


def test_weights_that_a_checkpoint_lacks_keep_their_values(tmp_path, released, model):
    prefix = released / "bert_model.ckpt"
    everything = bundle.read(prefix, bundle.read_names_and_shapes(prefix))
    kernel = "bert/pooler/dense/kernel"
    del everything[kernel]
    bundle.save(tmp_path / "part.ckpt", everything)
    model.build()
    before = np.asarray(model.pooler.dense.kernel)
    report = loading.load_checkpoint(model, tmp_path / "part.ckpt")
    assert report.missing == (kernel,)
    assert f"newly initialized: {kernel}" in str(report)
    np.testing.assert_array_equal(model.pooler.dense.kernel, before)


def test_weights_under_a_strategy_are_saved_and_loaded(tmp_path, released, config):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        mirrored = bert.BertModel(config)
        mirrored.build()
    report = loading.load_checkpoint(mirrored, released / "bert_model.ckpt")
    assert not report.missing
    bundle.save(
        tmp_path / "model.ckpt", checkpoint_names.checkpoint_variables(mirrored)
    )
    name = "bert/embeddings/word_embeddings"
    np.testing.assert_array_equal(
        bundle.read(tmp_path / "model.ckpt", [name])[name],
        bundle.read(released / "bert_model.ckpt", [name])[name],
    )


def test_another_shape_is_refused_before_anything_is_assigned(released, config):
    other = bert.BertModel(dataclasses.replace(config, vocab_size=99))
    other.build()
    before = np.asarray(other.pooler.dense.kernel)
    with pytest.raises(ValueError, match=r"\[288, 16\] in .* expected \[99, 16\]"):
        loading.load_checkpoint(other, released / "bert_model.ckpt")
    np.testing.assert_array_equal(other.pooler.dense.kernel, before)


def test_a_checkpoint_without_an_encoder_is_refused(tmp_path, model):
    bundle.save(tmp_path / "model.ckpt", {"dense/kernel": np.zeros(3)})
    with pytest.raises(ValueError, match=r"no encoder weights.* got dense/kernel"):
        loading.load_checkpoint(model, tmp_path / "model.ckpt")


def test_a_head_of_another_task_is_left_over(fine_tuned, config):
    tagger = fine_tuned("token_classification", task={"task": "token_classification"})
    classifier = classification.BertClassifier(config, num_labels=3)
    report = loading.load_checkpoint(classifier, tagger)
    assert report.missing == report.left_over == ("output_bias", "output_weights")
    # If the head is not recorded, names and shapes decide, as in 2018.
    report = loading.load_checkpoint(classifier, fine_tuned("classification"))
    assert report.missing == report.left_over == ()


def test_a_head_of_other_classes_is_refused(fine_tuned, config):
    classifier = classification.BertClassifier(config, num_labels=2)
    with pytest.raises(ValueError, match=r"output_.* expected \[2.*--head=encoder"):
        loading.load_checkpoint(classifier, fine_tuned("classification"))


@pytest.mark.parametrize(
    "task, num_labels, class_name",
    [
        ({"task": "classification"}, 3, "BertClassifier"),
        (
            {"task": "classification", "label_kind": "multi_label"},
            3,
            "BertMultiLabelClassifier",  # Else its answers went through a softmax.
        ),
        (
            {"task": "classification", "label_kind": "regression"},
            1,
            "BertRegressor",
        ),
        # A number for a pair of texts; a class of one would always have probability 1.
        ({"task": "retrieval", "model": "cross_encoder"}, 1, "BertRegressor"),
    ],
)
def test_a_head_answers_as_the_runs_own_model_does(
    fine_tuned, task, num_labels, class_name
):
    prefix = fine_tuned("classification", num_labels=num_labels, task=task)
    model = loading.load_model(prefix)
    assert type(model).__name__ == class_name
    # The same weights start another classifier, as those of the release do.
    assert loading.load_checkpoint(model, prefix).missing == ()


@pytest.mark.parametrize(
    "task, num_labels, message",
    [
        ({"label_kind": "regression", "labels": []}, 3, "but the head has 3"),
        ({"label_kind": ["ranks"]}, 3, "Unknown kind of label"),
    ],
)
def test_a_task_that_says_another_head_is_refused(
    fine_tuned, task, num_labels, message
):
    task = {"task": "classification", **task}
    prefix = fine_tuned("classification", num_labels=num_labels, task=task)
    with pytest.raises(ValueError, match=message):
        loading.load_model(prefix)


def test_a_bilstm_is_named_and_its_encoder_can_be_read(
    released, config, tmp_path, model
):
    tagger = token_classifier.BertTokenClassifier(
        config, num_labels=2, feature_based="weighted_sum_all"
    )
    weights = checkpoint_names.checkpoint_variables(tagger)
    bundle.save(tmp_path / "model.ckpt-1", weights)
    shutil.copy(released / "bert_config.json", tmp_path)
    tagger.save(tmp_path / "tagger.keras")
    for path in (tmp_path / "model.ckpt-1", tmp_path / "tagger.keras"):
        with pytest.raises(ValueError, match=r"has a BiLSTM .* use bert_tf\.load with"):
            loading.load_model(path)
        report = loading.load_checkpoint(model, path)
        assert not [name for name in report.missing if name.startswith("bert/")]


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({}, None),
        ({"hidden_act": "gelu_new"}, None),  # Another name of the same function.
        ({"hidden_act": "gelu_erf"}, "hidden_act is gelu in the checkpoint's"),
        ({"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon is 1e-12 in the checkpo"),
    ],
)
def test_what_the_model_computes_otherwise_is_reported_and_logged(
    released, config, caplog, changes, sentence
):
    model = bert.BertModel(dataclasses.replace(config, **changes))
    with caplog.at_level(logging.WARNING, logger="bert_tf"):
        report = loading.load_checkpoint(model, released / "bert_model.ckpt")
    if sentence is None:
        assert report.differences == ()
        assert caplog.text == ""
    else:
        assert sentence in str(report)
        assert sentence in caplog.text


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_refused(tmp_path, released, model, value):
    prefix = released / "bert_model.ckpt"
    everything = bundle.read(prefix, bundle.read_names_and_shapes(prefix))
    everything["bert/pooler/dense/kernel"][3, :2] = value
    bundle.save(tmp_path / "broken.ckpt", everything)
    sentence = r"^bert/pooler/dense/kernel in the checkpoint .*broken.ckpt has 2 of "
    with pytest.raises(ValueError, match=sentence):
        loading.load_checkpoint(model, tmp_path / "broken.ckpt")
    bundle.save(tmp_path / "model.ckpt-1", everything)
    bundle.write_state(str(tmp_path), ["model.ckpt-1"])
    with pytest.raises(ValueError, match=sentence.replace("broken.ckpt", "ckpt-1")):
        saving.restore(str(tmp_path), model, None)
