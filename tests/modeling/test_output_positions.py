"""The last layer is computed only where its vectors are read; nothing else changes."""

import dataclasses
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.modeling import kernels
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import whole_step
from tests import ring
from tests.modeling import small_config

# Without dropout; vectors of different positions must differ visibly.
STILL = small_config.create(
    num_hidden_layers=2,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=0.5,
)
CAUSAL = dataclasses.replace(STILL, attention="causal")
ROWS = {
    "input_ids": np.array([[2, 7, 9, 3, 5], [2, 5, 3, 0, 0]], "int32"),
    "input_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32"),
}
# Two sequences per row; the second row has only one.
PACKED = ROWS | {
    "sequence_ids": np.array([[1, 1, 1, 2, 2], [1, 1, 1, 0, 0]], "int32"),
    "position_ids": np.array([[0, 1, 2, 0, 1], [0, 1, 2, 0, 0]], "int32"),
    "cls_positions": np.array([[0, 3], [0, 0]], "int32"),
}
POSITIONS = np.array([[3, 1, 4], [1, 2, 0]], "int32")


@pytest.mark.parametrize("recomputes_layers", [False, ring.slow(True)])
@pytest.mark.parametrize(
    "config, features",
    [(STILL, ROWS), (STILL, PACKED), (CAUSAL, ROWS), (CAUSAL, PACKED)],
)
def test_vectors_and_gradients_are_those_of_the_whole_layer(
    config, features, recomputes_layers
):
    model = bert_tf.BertModel(config)
    model.encoder.recomputes_layers = recomputes_layers

    def compute(positions):
        with tf.GradientTape() as tape:
            outputs = model(features, output_positions=positions)
            vectors = outputs["sequence_output"]
            if positions is None:
                vectors = tf.gather(vectors, POSITIONS, batch_dims=1)
            loss = tf.reduce_sum(vectors**3) + tf.reduce_sum(
                outputs["pooled_output"] ** 2
            )
        return outputs, vectors, tape.gradient(loss, model.trainable_weights)

    whole, expected, expected_gradients = compute(None)
    outputs, vectors, gradients = compute(POSITIONS)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(
        outputs["pooled_output"], whole["pooled_output"], atol=1e-5
    )
    np.testing.assert_array_equal(
        outputs["embedding_output"], whole["embedding_output"]
    )
    lower, last = outputs["all_encoder_layers"]
    np.testing.assert_allclose(lower, whole["all_encoder_layers"][0], atol=1e-5)
    np.testing.assert_array_equal(last, vectors)
    for gradient, one in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(gradient),
            tf.convert_to_tensor(one),
            rtol=1e-4,
            atol=1e-3,
        )


PARTS = {name: np.stack([x, x[::-1]], axis=1) for name, x in ROWS.items()}
MASKED = {
    "masked_lm_positions": POSITIONS,
    "masked_lm_ids": np.ones_like(POSITIONS),
    "masked_lm_weights": np.ones(POSITIONS.shape, "float32"),
    "next_sentence_labels": np.array([0, 1], "int32"),
}
LABELS = {"label_ids": np.array([1, 0], "int32")}
LABELED_PACKED = MASKED | {"next_sentence_labels": np.array([[0, 1], [1, 0]])}
MODELS = {
    "pretrainer": (partial(bert_tf.BertPretrainer, STILL), ROWS | MASKED),
    "packed_pretrainer": (
        partial(bert_tf.BertPretrainer, STILL),
        PACKED | LABELED_PACKED,
    ),
    "classifier": (partial(bert_tf.BertClassifier, STILL, num_labels=3), ROWS | LABELS),
    "causal_classifier": (
        partial(bert_tf.BertClassifier, CAUSAL, num_labels=3),
        ROWS | LABELS,
    ),
    "multiple_choice": (partial(bert_tf.BertMultipleChoice, STILL), PARTS | LABELS),
    "cross_encoder": (partial(bert_tf.BertCrossEncoder, STILL), PARTS),
    "bi_encoder": (partial(bert_tf.BertBiEncoder, STILL, pooling="cls"), ROWS),
}


@pytest.mark.parametrize(
    "name", ring.quick("pretrainer", "classifier", "bi_encoder", of=MODELS)
)
@pytest.mark.parametrize("training", [False, True])
def test_models_give_the_same_results_from_fewer_positions(name, training, monkeypatch):
    create, features = MODELS[name]
    model = create()
    model.task_dropout_rate = 0.0
    call = model.bert.call
    requested = []

    def record(*args, output_positions=None, **kwargs):
        requested.append(output_positions)
        return call(*args, output_positions=output_positions, **kwargs)

    monkeypatch.setattr(model.bert, "call", record)
    outputs = model.training_outputs(features) if training else model(features)
    # In inference, the pretrainer also returns the vectors of all positions.
    assert (requested == [None]) is ("pretrainer" in name and not training)
    if "pretrainer" not in name:
        monkeypatch.setattr(
            model.bert, "call", lambda *args, output_positions, **kw: call(*args, **kw)
        )
    expected = model(features)
    assert set(expected) - set(outputs) <= {"sequence_output"}
    for key, one in outputs.items():
        np.testing.assert_allclose(
            keras.ops.cast(one, "float32"), expected[key], atol=1e-5, err_msg=key
        )


@pytest.mark.slow
def test_one_layer_and_a_step_that_xla_compiles_read_the_same_positions():
    config = dataclasses.replace(STILL, num_hidden_layers=1)
    model = bert_tf.BertModel(config)
    expected = tf.gather(model(ROWS)["sequence_output"], POSITIONS, batch_dims=1)
    vectors = model(ROWS, output_positions=POSITIONS)["sequence_output"]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)

    @tf.function(jit_compile=True)
    def compiled():
        with kernels.use(whole_step.WholeStep()):
            outputs = model(ROWS, output_positions=tf.constant(POSITIONS))
        return outputs["sequence_output"]

    np.testing.assert_allclose(compiled(), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("config", [STILL, CAUSAL])
def test_batch_and_length_may_be_unknown_in_a_graph(config):
    model = bert_tf.BertClassifier(config, num_labels=3)
    anything = tf.TensorSpec([None, None], tf.int32)
    signature = [{"input_ids": anything, "input_mask": anything}]
    compute = tf.function(lambda x: model(x)["logits"], input_signature=signature)
    np.testing.assert_allclose(
        compute({name: tf.constant(column) for name, column in ROWS.items()}),
        model(ROWS)["logits"],
        atol=1e-5,
    )


def test_dropout_does_not_depend_on_the_other_examples_of_a_batch():
    config = dataclasses.replace(
        STILL, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3
    )
    model = bert_tf.BertModel(config)
    keys = keras.ops.convert_to_tensor(
        dropout_masks.keys_of_examples(1, 2, np.arange(2))
    )

    def vectors(rows):
        features = {name: column[rows] for name, column in ROWS.items()}
        outputs = model(
            features,
            training=True,
            dropout_keys=keys[rows],
            output_positions=POSITIONS[rows],
        )
        return outputs["sequence_output"]

    both = vectors(slice(0, 2))
    np.testing.assert_allclose(vectors(slice(1, 2))[0], both[1], atol=1e-5)
    # Each position has masks of its own.
    same = model(
        {"input_ids": ROWS["input_ids"]},
        training=True,
        dropout_keys=keys,
        output_positions=np.array([[1, 1], [1, 1]], "int32"),
    )["sequence_output"]
    assert np.any(same[:, 0] != same[:, 1])
