"""The search for the nearest vectors, and scores of small rankings."""

import itertools

import numpy as np
import pytest

from bert_tf.tasks.retrieval import scores
from bert_tf.tasks.retrieval import search as search_module

RANKINGS = [[7, 3, 1], [5, 9, 2], [1, 2, 8]]
POSITIVES = [{3}, {5, 2}, {4}]


@pytest.mark.parametrize(
    "k, recall",
    [
        (1, (0 + 1 / 2 + 0) / 3),  # One of two relevant passages is half.
        (2, (1 + 1 / 2 + 0) / 3),
        (3, (1 + 1 + 0) / 3),
        (100, (1 + 1 + 0) / 3),  # All passages are looked at.
    ],
)
def test_recall_is_the_share_of_relevant_passages_among_the_first(k, recall):
    assert scores.recall_at(RANKINGS, POSITIVES, k) == pytest.approx(recall)


def test_the_reciprocal_rank_is_that_of_the_first_relevant_passage():
    expected = (1 / 2 + 1 + 0) / 3
    assert scores.mean_reciprocal_rank(RANKINGS, POSITIVES) == pytest.approx(expected)


def test_chance_is_the_mean_over_all_orders():
    positives = [{0}, {1, 3}]
    orders = list(itertools.permutations(range(4)))
    each = [scores.all_scores([order, order], positives) for order in orders]
    expected = {name: sum(one[name] for one in each) / len(orders) for name in each[0]}
    assert scores.scores_by_chance(4, positives) == pytest.approx(expected)


def test_the_reciprocal_rank_considers_a_hundred_passages():
    results = scores.all_scores([range(1000), range(1000)], [{99}, {100}])
    assert results["eval_mrr"] == (1 / 100 + 0) / 2


@pytest.mark.parametrize("top_k", [1, 3, 7, 20, 50, 80])
def test_exact_search_equals_sorting_all_scores(monkeypatch, reported, top_k):
    monkeypatch.setattr(search_module, "SCORES_PER_BLOCK", 4 * 50 + 7)
    # Products of whole numbers are exact and often equal; the first passage wins.
    random = np.random.default_rng(0)
    vectors = random.integers(-2, 3, size=(50, 8)).astype("float32")
    queries = random.integers(-2, 3, size=(9, 8)).astype("float32")
    scores = queries @ vectors.T
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    best = search_module.search(queries, vectors, top_k)
    np.testing.assert_array_equal(best.numbers, expected)
    np.testing.assert_allclose(
        best.scores, np.take_along_axis(scores, expected, axis=1), rtol=1e-5
    )
    assert [call[1:] for call in reported] == [(4, 9), (8, 9), (9, 9)]
