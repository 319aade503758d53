"""A checkpoint into a model: what is read, what is reported, what is refused."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.checkpoints import names
from bert_tf.checkpoints import native
from bert_tf.modeling import bert
from bert_tf.modeling import config
from bert_tf.pretraining import model as pretraining


@pytest.fixture
def released(golden):
    """Folder of a checkpoint that the 2018 code wrote."""
    return golden / "model"


@pytest.fixture
def model(released):
    return bert.BertModel(
        config.BertConfig.from_json_file(released / "bert_config.json")
    )


def test_a_released_checkpoint_is_read_and_reported(released, model):
    report = loading.load_checkpoint(model, released / "bert_model.ckpt")
    assert len(report.read) == len(model.weights)
    assert report.missing == ()
    assert report.optimizer == ("global_step",)
    assert "cls/predictions/output_bias" in report.left_over
    assert f"{len(model.weights)} weights read" in str(report)
    assert "in it, but not in the model: cls/" in str(report)


def test_slots_are_not_called_left_over(released, model):
    report = loading.load_checkpoint(model, released / "trained.ckpt")
    assert "bert/pooler/dense/kernel/adam_m" in report.optimizer
    assert not [name for name in report.left_over if "adam" in name]


def test_weights_that_a_checkpoint_lacks_keep_their_values(tmp_path, released, model):
    prefix = released / "bert_model.ckpt"
    everything = native.read(prefix, native.read_names_and_shapes(prefix))
    kernel = "bert/pooler/dense/kernel"
    del everything[kernel]
    native.save(tmp_path / "part.ckpt", everything)
    model.build()
    before = np.asarray(model.pooler.dense.kernel)
    report = loading.load_checkpoint(model, tmp_path / "part.ckpt")
    assert report.missing == (kernel,)
    assert f"newly initialized: {kernel}" in str(report)
    np.testing.assert_array_equal(model.pooler.dense.kernel, before)


def test_the_report_is_logged(released, model, caplog):
    with caplog.at_level(logging.INFO, logger="bert_tf"):
        loading.load_checkpoint(model, released / "bert_model.ckpt")
    assert "weights read" in caplog.text


def test_a_model_survives_saving_and_loading_bit_by_bit(tmp_path, released):
    read = config.BertConfig.from_json_file(released / "bert_config.json")
    first, second = pretraining.BertPretrainer(read), pretraining.BertPretrainer(read)
    native.save(tmp_path / "model.ckpt", names.checkpoint_variables(first))
    report = loading.load_checkpoint(second, tmp_path / "model.ckpt")
    assert (report.missing, report.left_over) == ((), ())
    for a, b in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_under_a_strategy_are_saved_and_loaded(tmp_path, released):
    read = config.BertConfig.from_json_file(released / "bert_config.json")
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        mirrored = bert.BertModel(read)
        mirrored.build()
    report = loading.load_checkpoint(mirrored, released / "bert_model.ckpt")
    assert not report.missing
    native.save(tmp_path / "model.ckpt", names.checkpoint_variables(mirrored))
    name = "bert/embeddings/word_embeddings"
    np.testing.assert_array_equal(
        native.read(tmp_path / "model.ckpt", [name])[name],
        native.read(released / "bert_model.ckpt", [name])[name],
    )


def test_another_shape_is_refused_before_anything_is_assigned(released, golden):
    read = config.BertConfig.from_json_file(released / "bert_config.json")
    other = bert.BertModel(config.BertConfig(**{**read.to_dict(), "vocab_size": 99}))
    other.build()
    before = np.asarray(other.pooler.dense.kernel)
    with pytest.raises(
        ValueError,
        match=r"word_embeddings has shape \[288, 16\] in .* expected \[99, 16\]",
    ):
        loading.load_checkpoint(other, released / "bert_model.ckpt")
    np.testing.assert_array_equal(other.pooler.dense.kernel, before)


def test_a_checkpoint_without_an_encoder_is_refused(tmp_path, model):
    native.save(tmp_path / "model.ckpt", {"dense/kernel": np.zeros(3)})
    with pytest.raises(
        ValueError, match=r"Nothing of the encoder .* got dense/kernel; give a BERT"
    ):
        loading.load_checkpoint(model, tmp_path / "model.ckpt")
