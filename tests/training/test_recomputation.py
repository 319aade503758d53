"""Layers recomputed in the backward pass give the same gradients."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import bert
from bert_tf.modeling import pretrainer
from bert_tf.training import distribution
from bert_tf.training import options as training_options
from bert_tf.training import steps
from tests.modeling import small_config

pytestmark = pytest.mark.slow


def features(num_examples=4, length=12):
    rng = np.random.RandomState(0)
    return {
        "input_ids": rng.randint(0, 30, [num_examples, length]).astype("int32"),
        "masked_lm_positions": rng.randint(0, length, [num_examples, 3]).astype(
            "int32"
        ),
        "masked_lm_ids": rng.randint(0, 30, [num_examples, 3]).astype("int32"),
        "masked_lm_weights": np.ones([num_examples, 3], "float32"),
        "next_sentence_labels": np.array([[0], [1]] * (num_examples // 2), "int32"),
        "example_index": np.arange(num_examples, dtype="int32"),
        "step": np.full([num_examples], 3, "int32"),
    }


def gradients(recomputes_layers, *, jit_compile=False, replicas=1, dtype="float32"):
    """Returns {variable's path: gradient} of four examples, with dropout."""
    keras.utils.set_random_seed(1)
    strategy = distribution.create_strategy(
        training_options.DeviceOptions(device="mirrored", num_replicas=replicas)
    )
    small = small_config.create(
        num_hidden_layers=3,
        hidden_dropout_prob=0.2,
        attention_probs_dropout_prob=0.2,
        initializer_range=0.3,
    )
    with strategy.scope():
        model = pretrainer.BertPretrainer(small, dtype=dtype)
        model.build()
        model.bert.encoder.recomputes_layers = recomputes_layers
    gradients_of = steps.build_gradient_function(model, 5, jit_compile)
    weights = {name: tf.constant(4.0) for name in model.loss_names}
    batches = tf.data.Dataset.from_tensors(features())

    @tf.function
    def run(iterator):
        return strategy.run(
            lambda batch: gradients_of(batch, weights)[1], args=(next(iterator),)
        )

    found = run(distribution.distribute(batches, strategy))
    return {
        model.trainable_variables[place].path: sum(
            part.numpy() for part in strategy.experimental_local_results(value)
        )
        for place, value in found.items()
    }


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"jit_compile": True},
        {"replicas": 2},
        {"replicas": 2, "jit_compile": True},
        {"dtype": "mixed_bfloat16"},
    ],
    ids=str,
)
def test_gradients_are_the_same_with_dropout_on(setting):
    expected = gradients(False, **setting)
    found = gradients(True, **setting)
    assert found.keys() == expected.keys()
    largest = max(np.max(np.abs(gradient)) for gradient in expected.values())
    for path, gradient in expected.items():
        assert np.max(np.abs(found[path] - gradient)) <= 1e-6 * largest, path


def test_every_layer_is_computed_twice(monkeypatch):
    computed = []
    call = bert.EncoderLayer.call

    @functools.wraps(call)  # Keras reads the signature.
    def watched(self, *arguments, **settings):
        computed.append(self.name)
        return call(self, *arguments, **settings)

    monkeypatch.setattr(bert.EncoderLayer, "call", watched)
    gradients(True)
    names = [f"layer_{index}" for index in range(3)]
    assert computed == [*names, *reversed(names)]
