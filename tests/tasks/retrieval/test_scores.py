"""Recall and mean reciprocal rank of small rankings."""

import itertools

import pytest

from bert_tf.tasks.retrieval import scores

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
