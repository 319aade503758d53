"""BertLeftToRight: its loss against NumPy, and what takes part in it."""

import dataclasses

import numpy as np
import pytest

from bert_tf.modeling import pretrainer
from tests.modeling import small_config

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
