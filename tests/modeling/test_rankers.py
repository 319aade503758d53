"""What the loss of a bi-encoder compares, with numbers on the screen."""

import dataclasses

import numpy as np
import pytest

from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.modeling import pooling as pooling_module
from bert_tf.modeling import rankers
from tests.modeling import small_config

SMALL = small_config.create(hidden_size=4)
# Cosines of three queries (rows) with three passages (columns) are these.
COSINES = np.array([[0.8, 0.1, 0.6], [0.2, 0.9, 0.5], [0.3, 0.4, 0.7]], "float32")
OUTPUTS = {
    "query_embeddings": np.pad(COSINES, ((0, 0), (0, 1))),
    "passage_embeddings": np.eye(3, 4, dtype="float32")[:, None],
    "passage_weights": np.ones(3, "float32"),
}
TEMPERATURE = 0.5


def loss_of(passage_ids, positive_ids, weights=None):
    bi_encoder = rankers.BertBiEncoder(SMALL, temperature=TEMPERATURE)
    features = {
        "input_ids": np.zeros((3, 1, 2), "int32"),
        "positive_ids": np.array(positive_ids, "int32"),
    }
    outputs = OUTPUTS | {"passage_ids": np.array(passage_ids, "int32")[:, None]}
    if weights is not None:
        features["is_real_example"] = np.array(weights, "float32")
        outputs["passage_weights"] = features["is_real_example"]
    return float(bi_encoder.loss_sums(features, outputs)["ranking_loss"])


def cross_entropy(right, wrong):
    scores = np.array([right, *wrong]) / TEMPERATURE
    return np.log(np.sum(np.exp(scores))) - scores[0]


@pytest.mark.parametrize(
    "passage_ids, positive_ids, wrong",
    [
        # Everything else in the batch is wrong.
        ([0, 1, 2], [[0], [1], [2]], [(0.1, 0.6), (0.2, 0.5), (0.3, 0.4)]),
        # The third passage is the first one again.
        ([0, 1, 0], [[0], [1], [0]], [(0.1,), (0.2, 0.5), (0.4,)]),
        # The second passage answers the first query, too.
        ([0, 1, 2], [[0, 1], [1, -2], [2, -2]], [(0.6,), (0.2, 0.5), (0.3, 0.4)]),
    ],
    ids=["different", "a duplicate", "two answers"],
)
def test_what_is_right_is_never_taken_for_wrong(passage_ids, positive_ids, wrong):
    expected = sum(
        cross_entropy(COSINES[row, row], own) for row, own in enumerate(wrong)
    )
    assert loss_of(passage_ids, positive_ids) == pytest.approx(expected, rel=1e-5)


def test_an_example_that_is_not_real_is_neither_query_nor_wrong_passage():
    loss = loss_of([0, 1, 2], [[0], [1], [2]], weights=[1, 1, 0])
    expected = cross_entropy(0.8, [0.1]) + cross_entropy(0.9, [0.2])
    assert loss == pytest.approx(expected, rel=1e-5)


def test_vectors_have_length_1_and_queries_and_passages_one_encoder():
    bi_encoder = rankers.BertBiEncoder(SMALL, pooling="cls")
    ids = np.array([[2, 7, 9, 3], [2, 5, 3, 0]], "int32")
    mask = (ids > 0).astype("int32")
    alone = bi_encoder({"input_ids": ids, "input_mask": mask})["embeddings"]
    np.testing.assert_allclose(np.linalg.norm(alone, axis=1), 1, rtol=1e-5)
    together = bi_encoder(
        {
            "query_input_ids": ids,
            "query_input_mask": mask,
            "input_ids": ids[:, None],
            "input_mask": mask[:, None],
            "passage_ids": np.array([[0], [1]], "int32"),
        }
    )
    np.testing.assert_allclose(together["query_embeddings"], alone, atol=1e-6)
    np.testing.assert_allclose(together["passage_embeddings"][:, 0], alone, atol=1e-6)


def test_a_cross_encoder_scores_pairs_and_candidates_alike():
    cross_encoder = rankers.BertCrossEncoder(SMALL)
    ids = np.array([[[2, 7, 9, 3], [2, 5, 3, 0]]], "int32")
    mask = (ids > 0).astype("int32")
    candidates = cross_encoder({"input_ids": ids, "input_mask": mask})["logits"]
    pairs = cross_encoder({"input_ids": ids[0], "input_mask": mask[0]})["logits"]
    assert candidates.shape == (1, 2)
    np.testing.assert_allclose(candidates[0], pairs, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"pooling": "sum"}, "pooling 'sum'; expected one of cls, mean, max"),
        ({"temperature": 0}, "must be positive, got 0"),
    ],
)
def test_what_a_bi_encoder_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        rankers.BertBiEncoder(SMALL, **arguments)


def test_cls_pooling_of_a_left_to_right_model_is_refused():
    causal = dataclasses.replace(SMALL, attention="causal")
    with pytest.raises(ValueError, match="\\[CLS\\] attends only to itself"):
        rankers.BertBiEncoder(causal, pooling="cls")
    assert rankers.BertBiEncoder(causal, pooling="mean").pooling == "mean"


def test_the_names_of_poolings_are_those_of_the_model():
    assert fine_tuning_options.POOLINGS == pooling_module.KINDS
