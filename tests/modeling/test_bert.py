"""The encoder on its own; `test_pretrainer` has its recorded numbers."""

import dataclasses
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.modeling import bert
from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import inspection
from bert_tf.modeling.kernels import dropout_masks
from tests import ring
from tests.modeling import small_config

SMALL = small_config.create(num_hidden_layers=2)
IDS = small_config.IDS


def test_mixed_precision_stays_near_the_recorded_vectors(golden):
    folder = golden / "model"
    forward = np.load(folder / "forward.npz")
    inputs = {name[3:]: forward[name] for name in forward if name.startswith("in_")}
    path = folder / "bert_config.json"
    model = bert.BertModel(
        config_module.BertConfig.from_json_file(path), dtype="mixed_bfloat16"
    )
    loading.load_checkpoint(model, folder / "bert_model.ckpt")
    outputs = model(inputs)
    assert outputs["sequence_output"].dtype == tf.bfloat16
    assert {weight.dtype for weight in model.weights} == {"float32"}
    pooled = keras.ops.cast(outputs["pooled_output"], "float32")
    np.testing.assert_allclose(pooled, forward["pooled_output"], atol=0.03)


def test_gradients_with_respect_to_the_vectors_inside_exist():
    model = bert.BertModel(SMALL)
    with tf.GradientTape() as tape:
        outputs = model({"input_ids": IDS})
        loss = tf.reduce_sum(outputs["pooled_output"])
    inside = [outputs["embedding_output"], outputs["all_encoder_layers"][0]]
    for gradient in tape.gradient(loss, inside):
        assert np.any(gradient[1] != 0)


def test_mask_and_segments_have_defaults():
    model = bert.BertModel(SMALL)
    defaults = {"input_mask": np.ones_like(IDS), "segment_ids": np.zeros_like(IDS)}
    np.testing.assert_array_equal(
        model({"input_ids": IDS})["sequence_output"],
        model({"input_ids": IDS, **defaults})["sequence_output"],
    )


def test_padding_changes_nothing():
    model = bert.BertModel(SMALL)
    short = model({"input_ids": IDS[:, :3]})["sequence_output"]
    mask = np.array([[1, 1, 1, 0]] * 2, "int32")
    padded = model({"input_ids": IDS, "input_mask": mask})["sequence_output"]
    np.testing.assert_allclose(padded[:, :3], short, atol=1e-6)


def test_the_activation_of_the_configuration_is_used():
    outputs = {}
    for name in ("gelu", "gelu_erf", "relu", "tanh", "linear"):
        keras.utils.set_random_seed(3)
        model = bert.BertModel(dataclasses.replace(SMALL, hidden_act=name))
        model.build()
        model.encoder.encoder_layers[0].intermediate.dense.bias.assign([0.5] * 12)
        outputs[name] = np.asarray(model({"input_ids": IDS})["sequence_output"])
    for name, other in itertools.combinations(outputs, 2):
        assert np.abs(outputs[name] - outputs[other]).max() > 1e-6


def test_a_sequence_beyond_the_position_table_is_refused():
    with pytest.raises(ValueError, match=r"max_seq_length is 17, but .* at most 16"):
        bert.BertModel(SMALL)({"input_ids": np.zeros((1, 17), "int32")})


def test_every_place_of_dropout_has_its_own_number(monkeypatch):
    sites = []

    def record(x, dropout, **settings):
        sites.append(dropout.site)
        return x

    model = bert.BertModel(SMALL)
    model.build()
    monkeypatch.setattr(dropout_masks, "dropped", record)
    keys = dropout_masks.keys_of_examples(0, 0, np.arange(2, dtype="int32"))
    model({"input_ids": IDS}, training=True, dropout_keys=keys)
    assert sorted(sites) == list(range(1 + 3 * SMALL.num_hidden_layers))


def test_kernels_are_drawn_within_two_deviations():
    wide = dataclasses.replace(SMALL, hidden_size=128, initializer_range=0.02)
    model = bert.BertModel(wide)
    model.build()
    layer = model.encoder.encoder_layers[0]
    for kernel in (layer.intermediate.dense.kernel, model.embeddings.word_embeddings):
        values = np.asarray(kernel)
        assert np.abs(values).max() <= 0.04
        # The release's truncated normal is not scaled up: its deviation is 0.88.
        assert 0.80 < values.std() / 0.02 < 0.96
    assert np.all(np.asarray(layer.intermediate.dense.bias) == 0)


def test_no_two_weights_begin_with_the_same_values():
    model = bert.BertModel(SMALL)
    model.build()
    drawn = [w for w in model.weights if len(w.shape) == 2]
    starts = {np.asarray(weight).ravel()[:4].tobytes() for weight in drawn}
    assert len(starts) == len(drawn)


def test_positions_that_begin_as_waves_make_an_offset_one_linear_map():
    waves = dataclasses.replace(
        SMALL, initializer_range=0.07, position_initializer="sinusoidal"
    )
    layer = embeddings.Embeddings(waves)
    layer.build()
    table = np.asarray(layer.position_embeddings)
    np.testing.assert_allclose((table**2).mean(axis=1), 0.07**2, rtol=1e-5)
    here, there = table[:-3], table[3:]
    offset = np.linalg.lstsq(here, there, rcond=None)[0]
    np.testing.assert_allclose(here @ offset, there, atol=1e-4)
    assert layer.position_embeddings.trainable
    # All other tables are drawn as ever.
    assert np.abs(np.asarray(layer.word_embeddings)).max() <= 0.14


def test_attention_weights_are_the_softmax_of_the_scores():
    model = bert.BertModel(SMALL)
    mask = (IDS > 0).astype("int32")
    features = {"input_ids": IDS, "input_mask": mask}
    outputs = model(features)
    weights = inspection.attention_weights(model, features)
    assert [one.shape for one in weights] == [
        (2, 2, 4, 4),  # B, N, F, T
        (2, 2, 4, 4),
    ]
    # The second layer looks at what the first one gave.
    below = outputs["all_encoder_layers"][0].numpy()
    layer = model.encoder.encoder_layers[1].attention.self_attention
    query, key = (
        (below @ dense.kernel.numpy() + dense.bias.numpy()).reshape(2, 4, 2, 4)
        for dense in (layer.query, layer.key)
    )
    scores = np.einsum("bfnd,btnd->bnft", query, key) / 2  # The root of D = 4.
    exponents = np.exp(scores) * mask[:, None, None, :]
    expected = exponents / exponents.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights[1], expected, atol=1e-6)


@pytest.mark.parametrize("attention", ["bidirectional", "causal"])
def test_sequences_that_share_a_row_do_not_see_one_another(attention):
    model = bert.BertModel(dataclasses.replace(SMALL, attention=attention))
    first, second = [2, 7, 8, 3], [2, 9, 3]
    alone = [model({"input_ids": np.array([ids])}) for ids in (first, second)]
    shared_row = model(
        {
            "input_ids": np.array([[*first, *second, 0, 0]]),
            "input_mask": np.array([[1, 1, 1, 1, 1, 1, 1, 0, 0]]),
            "position_ids": np.array([[0, 1, 2, 3, 0, 1, 2, 0, 0]]),
            "sequence_ids": np.array([[1, 1, 1, 1, 2, 2, 2, 0, 0]]),
            "cls_positions": np.array([[0, 4]]),
        }
    )
    for number, place in enumerate([slice(0, 4), slice(4, 7)]):
        for name, vectors in [
            ("sequence_output", shared_row["sequence_output"][:, place]),
            ("pooled_output", shared_row["pooled_output"][:, number]),
        ]:
            np.testing.assert_allclose(vectors, alone[number][name], atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_in_half_precision_give_nearly_the_same_vectors(dtype):
    exact, half = bert.BertModel(SMALL), bert.BertModel(SMALL, dtype=dtype)
    expected = exact({"input_ids": IDS})["sequence_output"]
    half.build()
    for weight, value in zip(half.weights, exact.weights, strict=True):
        weight.assign(value)
    vectors = half({"input_ids": IDS})["sequence_output"]
    assert half.pooler.dense.kernel.dtype == vectors.dtype.name == dtype
    np.testing.assert_allclose(tf.cast(vectors, tf.float32), expected, atol=0.1)


# Causal attention: what a position sees, and which vector represents a sequence.


CAUSAL = small_config.create(num_hidden_layers=2, attention="causal")
LONGER_IDS = np.array([[2, 7, 9, 11, 3], [2, 5, 3, 0, 0]], "int32")
LONGER_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")


@pytest.mark.parametrize("place", ring.quick(1, 4, of=(1, 2, 3, 4)))
@pytest.mark.parametrize("training", [False, True])
def test_no_vector_depends_on_a_later_piece(place, training):
    model = bert.BertModel(CAUSAL)
    keys = dropout_masks.keys_of_examples(1, 2, np.arange(2)) if training else None

    def vectors(ids):
        features = {"input_ids": ids, "input_mask": LONGER_MASK}
        return np.asarray(
            model(features, training=training, dropout_keys=keys)["sequence_output"]
        )

    other = LONGER_IDS.copy()
    other[:, place:] = 20
    before, after = vectors(LONGER_IDS), vectors(other)
    np.testing.assert_array_equal(before[:, :place], after[:, :place])
    assert np.abs(before[0, place:] - after[0, place:]).min(axis=-1).max() > 1e-3
    both_ways = bert.BertModel(dataclasses.replace(CAUSAL, attention="bidirectional"))
    seen = [
        both_ways({"input_ids": ids})["sequence_output"][0]
        for ids in (LONGER_IDS, other)
    ]
    assert np.abs(seen[0][:place] - seen[1][:place]).max() > 1e-4


def test_the_pooled_vector_is_of_the_last_real_piece():
    model = bert.BertModel(CAUSAL)
    outputs = model({"input_ids": LONGER_IDS, "input_mask": LONGER_MASK})
    last = np.asarray(outputs["sequence_output"])[[0, 1], [4, 2]]
    expected = np.tanh(
        last @ np.asarray(model.pooler.dense.kernel) + model.pooler.dense.bias
    )
    np.testing.assert_allclose(outputs["pooled_output"], expected, atol=1e-6)
