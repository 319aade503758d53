"""BertPretrainer against the release's numbers, and BertLeftToRight against NumPy."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from tests.modeling import small_config


@pytest.fixture(params=["small", "large"])
def recorded(request, golden):
    """Folder of a recorded model; the large one is beside the checkout."""
    if request.param == "small":
        return golden / "model"
    return request.getfixturevalue("shared") / "golden" / "model_gelu"


def features_of(forward):
    """Returns the inputs of the recorded model."""
    return {name[3:]: forward[name] for name in forward if name.startswith("in_")}


def create_model(folder, **options):
    read = config_module.BertConfig.from_json_file(folder / "bert_config.json")
    return pretrainer.BertPretrainer(read, **options)


def test_vectors_scores_and_losses_equal_the_recorded_ones(recorded):
    forward = np.load(recorded / "forward.npz")
    features = features_of(forward)
    model = create_model(recorded)
    report = loading.load_checkpoint(model, recorded / "bert_model.ckpt")
    assert not report.missing
    assert not report.left_over

    encoded, outputs = model.bert(features), model(features)
    for name in ("embedding_output", "pooled_output"):
        np.testing.assert_allclose(encoded[name], forward[name], atol=2e-5)
    layers = np.stack(encoded["all_encoder_layers"])
    np.testing.assert_allclose(layers, forward["layers"], atol=2e-5)
    np.testing.assert_array_equal(encoded["sequence_output"], layers[-1])
    np.testing.assert_array_equal(outputs["sequence_output"], layers[-1])
    words = keras.ops.log_softmax(outputs["masked_lm_logits"])
    words = np.reshape(words, (-1, model.config.vocab_size))
    columns = forward["mlm_log_probs_columns"]
    np.testing.assert_allclose(words[:, columns], forward["mlm_log_probs"], atol=2e-5)
    sentences = keras.ops.log_softmax(outputs["next_sentence_logits"])
    np.testing.assert_allclose(sentences, forward["nsp_log_probs"], atol=2e-5)
    weights, sums = model.loss_weights(features), model.loss_sums(features, outputs)
    losses = {
        term: float(sums[term] / (weights[term] + model.loss_epsilons.get(term, 0)))
        for term in model.loss_names
    }
    np.testing.assert_allclose(losses["masked_lm_loss"], forward["mlm_loss"], rtol=2e-6)
    np.testing.assert_allclose(
        losses["next_sentence_loss"], forward["nsp_loss"], rtol=2e-6
    )
    np.testing.assert_allclose(
        model.total_loss(features, outputs), sum(losses.values()), rtol=1e-6
    )


def test_checkpoint_names_and_shapes_are_those_of_2018(recorded):
    model = create_model(recorded, name="any_name")
    shapes = {
        name: list(weight.shape)
        for name, weight in checkpoint_names.checkpoint_variables(model).items()
    }
    expected = bundle.read_names_and_shapes(recorded / "bert_model.ckpt")
    expected.pop("global_step")
    assert shapes == {name: list(shape) for name, shape in expected.items()}


def test_without_next_sentence_there_is_nothing_of_it(golden):
    folder = golden / "model"
    model = create_model(folder, next_sentence=False)
    written = set(checkpoint_names.checkpoint_variables(model))
    everything = set(checkpoint_names.checkpoint_variables(create_model(folder)))
    assert everything - written == {
        "cls/seq_relationship/output_weights",
        "cls/seq_relationship/output_bias",
    }
    forward = np.load(folder / "forward.npz")
    features = features_of(forward)
    del features["next_sentence_labels"]
    outputs = model(features)
    assert "next_sentence_logits" not in outputs
    assert set(model.loss_sums(features, outputs)) == {"masked_lm_loss"}
    assert set(model.metric_sums(features, outputs)) == {"masked_lm_accuracy"}


def test_accuracies_count_the_highest_scores():
    small = config_module.BertConfig(vocab_size=5, hidden_size=4, num_attention_heads=1)
    model = pretrainer.BertPretrainer(small)
    features = {
        "input_ids": np.zeros((2, 3), "int32"),
        "masked_lm_ids": np.array([[1, 2], [3, 0]], "int32"),
        "masked_lm_weights": np.array([[1, 1], [1, 0]], "float32"),
        "next_sentence_labels": np.array([[1], [0]], "int32"),
    }
    outputs = {
        # Right, wrong; right, padding.
        "masked_lm_logits": tf.one_hot([[1, 4], [3, 0]], 5),
        "next_sentence_logits": tf.one_hot([1, 1], 2),
    }
    metrics = model.metric_sums(features, outputs)
    assert [float(value) for value in metrics["masked_lm_accuracy"]] == [2, 3]
    assert [float(value) for value in metrics["next_sentence_accuracy"]] == [1, 2]


def test_the_word_table_is_learned_from_both_its_uses(golden):
    folder = golden / "model"
    features = features_of(np.load(folder / "forward.npz"))
    model = create_model(folder)
    model.build()
    table = model.bert.embeddings.word_embeddings.value
    with tf.GradientTape() as tape:
        loss = model.total_loss(features, model(features))
    gradient = tape.gradient(loss, table)
    assert isinstance(gradient, tf.Tensor)
    assert np.abs(gradient).min(axis=1).max() > 0
    assert (np.abs(gradient).max(axis=1) > 0).all()


def test_the_masked_word_loss_divides_by_the_number_of_words_plus_1e_5():
    model = pretrainer.BertPretrainer(
        config_module.BertConfig(
            vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1
        ),
        next_sentence=False,
    )
    features = {
        "input_ids": np.array([[2, 4, 3]], "int32"),
        "masked_lm_positions": np.array([[1]], "int32"),
        "masked_lm_ids": np.array([[5]], "int32"),
    }
    outputs = model({**features})

    def loss(weight):
        column = {"masked_lm_weights": np.array([[weight]], "float32")}
        return float(model.total_loss({**features, **column}, outputs))

    word = -float(keras.ops.log_softmax(outputs["masked_lm_logits"])[0, 0, 5])
    # 1e-5 / (1e-5 + 1e-5) of the word's loss; a batch without masked words has loss 0.
    np.testing.assert_allclose(
        [loss(1e-5), loss(3e-5), loss(0.0)], [word / 2, word * 0.75, 0.0], rtol=1e-5
    )


CAUSAL = small_config.create(
    num_hidden_layers=2, attention="causal", initializer_range=0.5
)
# Of [CLS] 7 9 11 [SEP] and [CLS] 5 [SEP]; 4 is [MASK], 20 a random piece.
MASKED = {
    "input_ids": np.array([[2, 4, 9, 20, 3], [2, 4, 3, 0, 0]], "int32"),
    "input_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32"),
    "segment_ids": np.zeros((2, 5), "int32"),
    "masked_lm_positions": np.array([[1, 3], [1, 0]], "int32"),
    "masked_lm_ids": np.array([[7, 11], [5, 0]], "int32"),
    "masked_lm_weights": np.array([[1, 1], [1, 0]], "float32"),
}
ORIGINAL = [[2, 7, 9, 11, 3], [2, 5, 3, 0, 0]]


@pytest.fixture
def model():
    return pretrainer.BertLeftToRight(CAUSAL)


def test_the_loss_is_the_mean_over_all_pieces_that_follow_another_one(model):
    outputs = model(MASKED)
    head, vectors = model.cls.predictions, np.asarray(outputs["sequence_output"])
    hidden = np.asarray(head.transform(vectors.reshape(-1, 8)), "float64")
    table = np.asarray(model.bert.embeddings.word_embeddings, "float64")
    logits = (hidden @ table.T + np.asarray(head.output_bias)).reshape(2, 5, 30)
    losses, hits = [], []
    # [CLS] 7 9 11 [SEP] has four such pieces, [CLS] 5 [SEP] two.
    for row, place in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]:
        scores, label = logits[row, place], ORIGINAL[row][place + 1]
        highest = scores.max()
        losses.append(np.log(np.exp(scores - highest).sum()) + highest - scores[label])
        hits.append(scores.argmax() == label)
    np.testing.assert_allclose(
        model.total_loss(MASKED, outputs), np.mean(losses), rtol=1e-5
    )
    num_hits, weight = model.metric_sums(MASKED, outputs)["next_piece_accuracy"]
    assert (float(num_hits), float(weight)) == (sum(hits), 6.0)


def test_masks_and_padding_change_nothing(model):
    plain = {"input_ids": np.array(ORIGINAL), "input_mask": MASKED["input_mask"]}
    expected = float(model.total_loss(MASKED, model(MASKED)))
    assert float(model.total_loss(plain, model(plain))) == expected
    other = {**plain, "input_ids": np.array([ORIGINAL[0], [2, 5, 3, 17, 18]])}
    assert float(model.total_loss(other, model(other))) == pytest.approx(expected)


def test_the_first_piece_of_a_sequence_is_not_predicted_from_another_one(model):
    apart = {"input_ids": np.array(ORIGINAL), "input_mask": MASKED["input_mask"]}
    together = {
        "input_ids": np.array([[2, 7, 9, 11, 3, 2, 5, 3, 0]]),
        "input_mask": np.array([[1] * 8 + [0]]),
        "position_ids": np.array([[0, 1, 2, 3, 4, 0, 1, 2, 0]]),
        "sequence_ids": np.array([[1, 1, 1, 1, 1, 2, 2, 2, 0]]),
    }
    assert float(model.loss_weights(together)["next_piece_loss"]) == 6.0
    np.testing.assert_allclose(
        model.total_loss(together, model(together)),
        model.total_loss(apart, model(apart)),
        rtol=1e-5,
    )


def test_a_model_that_sees_what_follows_is_refused():
    both_ways = dataclasses.replace(CAUSAL, attention="bidirectional")
    with pytest.raises(ValueError, match="attention 'causal', got 'bidirectional'"):
        pretrainer.BertLeftToRight(both_ways)
