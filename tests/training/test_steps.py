import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import tfrecord
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer as pretraining_model
from bert_tf.optimization import adam_weight_decay
from bert_tf.training import distribution
from bert_tf.training import options
from bert_tf.training import steps


@pytest.fixture
def small(golden):
    path = golden / "model" / "bert_config.json"
    return config_module.BertConfig.from_json_file(path)


@pytest.fixture
def pretrainer(small):
    keras.utils.set_random_seed(0)
    model = pretraining_model.BertPretrainer(small)
    model.build()
    return model


@pytest.fixture
def batches(golden):
    source = batching.TFRecordSource(
        tfrecord.RecordFiles([golden / "model" / "examples.tfrecord"])
    )
    return batching.training_batches(source, batch_size=4, num_steps=9, seed=1)


def hlo_of(function, *arguments):
    """Returns the program that XLA compiles from a function, with all shapes."""
    compiled = tf.function(function, jit_compile=True, autograph=False)
    return compiled.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")


def dynamic_shapes(hlo):
    """Returns the shapes in a program that have a bound instead of a size."""
    return re.findall(r"\w+\[[^\]]*<=[^\]]*\]", hlo)


@pytest.mark.slow
def test_every_shape_of_the_training_step_is_static(pretrainer, batches):
    gradients_of = steps.build_gradient_function(pretrainer, random_seed=1)
    weights = {name: tf.constant(1.0) for name in pretrainer.loss_names}
    hlo = hlo_of(gradients_of, next(iter(batches)), weights)
    assert "ENTRY" in hlo
    assert dynamic_shapes(hlo) == []


def test_a_dynamic_shape_would_be_seen():
    def keep_positive(values):
        return tf.boolean_mask(values, values > 0) * 2.0

    assert dynamic_shapes(hlo_of(keep_positive, tf.constant([1.0, -1.0, 2.0])))


@pytest.mark.slow
def test_a_step_is_traced_once_whatever_the_number_of_steps(pretrainer, batches):
    strategy = tf.distribute.get_strategy()
    optimizer = adam_weight_decay.create_optimizer(1e-3, 9, 0)
    optimizer.build(pretrainer.trainable_variables)
    train_steps = steps.build_train_steps(
        pretrainer,
        optimizer,
        strategy,
        random_seed=1,
    )
    iterator = iter(batches)
    shapes = [
        train_steps(iterator, tf.constant(count))["loss"].shape for count in (1, 3, 2)
    ]
    assert shapes == [(1,), (3,), (2,)]
    assert train_steps.experimental_get_tracing_count() == 1
    assert int(optimizer.iterations.numpy()) == 6


def test_replicas_have_micro_batches_of_several_lengths():
    strategy = distribution.create_strategy(
        options.DeviceOptions(device="mirrored", num_replicas=2)
    )
    batches = tf.data.Dataset.range(3, 5, output_type=tf.int32).map(
        lambda length: {"ids": tf.zeros([8, length]), "example_index": tf.range(8)}
    )

    def multiply(part, _):
        return part["example_index"] * tf.shape(part["ids"])[1]

    @tf.function
    def take_step(batch):
        return strategy.run(
            lambda rows: steps._accumulate(multiply, rows, {}, 2), (batch,)
        )

    iterator = distribution.distribute(batches, strategy)
    for length in (3, 4):
        sums = strategy.experimental_local_results(take_step(next(iterator)))
        assert sums[0].numpy().tolist() == [(0 + 2) * length, (1 + 3) * length]
        assert sums[1].numpy().tolist() == [(4 + 6) * length, (5 + 7) * length]


@pytest.mark.slow
def test_weights_that_no_loss_reaches_stay_as_they_are(small, batches):
    model = pretraining_model.BertPretrainer(small, next_sentence=False)
    model.build()
    optimizer = adam_weight_decay.create_optimizer(1e-2, 9, 0)
    optimizer.build(model.trainable_variables)
    before = model.bert.pooler.dense.kernel.numpy()
    train_steps = steps.build_train_steps(
        model,
        optimizer,
        tf.distribute.get_strategy(),
        random_seed=1,
        micro_batches=2,
    )
    history = train_steps(iter(batches), tf.constant(2))
    assert "next_sentence_loss" not in history
    np.testing.assert_array_equal(model.bert.pooler.dense.kernel.numpy(), before)
