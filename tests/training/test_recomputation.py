"""Layers recomputed in the backward pass: gradients and memory."""

import functools
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.training import building
from bert_tf.training import distribution
from bert_tf.training import options as training_options
from bert_tf.training import steps

# Prints the most memory, in MB, that a backward pass takes beyond the weights.
PEAK = """
import sys
import numpy as np
import tensorflow as tf
from bert_tf.modeling import config
from bert_tf.modeling import pretrainer
from bert_tf.data.parallel.process_pool import peak_memory_mb
from bert_tf.training import steps

size = dict(vocab_size=100, hidden_size=128, num_attention_heads=2)
size |= dict(num_hidden_layers=8, intermediate_size=512)
model = pretrainer.BertPretrainer(config.BertConfig(**size))
model.build()
model.bert.encoder.recomputes_layers = sys.argv[1] == "True"
batch = {
    "input_ids": tf.ones([8, 512], tf.int32),
    "masked_lm_positions": tf.ones([8, 1], tf.int32),
    "masked_lm_ids": tf.ones([8, 1], tf.int32),
    "masked_lm_weights": tf.ones([8, 1]),
    "next_sentence_labels": tf.ones([8, 1], tf.int32),
    "example_index": tf.range(8),
    "step": tf.zeros([8], tf.int32),
}
weights = {name: tf.constant(1.0) for name in model.loss_names}
gradients_of = steps.build_gradient_function(model, 1)
compute = tf.function(lambda: gradients_of(batch, weights), autograph=False)
compute = compute.get_concrete_function()
before = peak_memory_mb()
compute()
print(peak_memory_mb() - before)
"""


def features(num_examples=4, length=12):
    rng = np.random.RandomState(0)
    return {
        "input_ids": rng.randint(0, 50, [num_examples, length]).astype("int32"),
        "masked_lm_positions": rng.randint(0, length, [num_examples, 3]).astype(
            "int32"
        ),
        "masked_lm_ids": rng.randint(0, 50, [num_examples, 3]).astype("int32"),
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
    small = config_module.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.2,
        attention_probs_dropout_prob=0.2,
        max_position_embeddings=12,
        initializer_range=0.3,
    )
    with strategy.scope():
        model = building.build_model(
            lambda: pretrainer.BertPretrainer(small, dtype=dtype),
            recompute_layers=recomputes_layers,
        )
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
        pytest.param({"replicas": 2, "jit_compile": True}, marks=pytest.mark.slow),
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
    call = pretrainer.bert.EncoderLayer.call

    @functools.wraps(call)  # Keras reads the signature.
    def watched(self, *arguments, **settings):
        computed.append(self.name)
        return call(self, *arguments, **settings)

    monkeypatch.setattr(pretrainer.bert.EncoderLayer, "call", watched)
    gradients(True)
    names = [f"layer_{index}" for index in range(3)]
    assert computed == [*names, *reversed(names)]


@pytest.mark.slow
def test_a_backward_pass_takes_much_less_memory(project_root):
    peaks = [
        float(
            subprocess.run(
                [sys.executable, "-c", PEAK, str(recomputes)],
                cwd=project_root,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for recomputes in (False, True)
    ]
    print("MB kept and recomputed:", peaks)
    assert peaks[1] < 0.6 * peaks[0]
