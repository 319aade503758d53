"""Scores of rankings: recall at k, and the mean reciprocal rank.

Recall at k is the score for finding candidates: a passage missing from the first k
cannot be recovered by later ranking. The mean reciprocal rank is the score for showing
them: only the first relevant passage counts, because a reader stops there. It gives 1
for rank 1, 1/2 for rank 2, and so on, because a step down costs most at the top.
"""

import math
from collections.abc import Collection
from collections.abc import Sequence

RECALL_AT = (1, 5, 10, 100)
MRR_DEPTH = 100  # `mrr` considers this many passages.
_NAMES = (*(f"eval_recall_at_{k}" for k in RECALL_AT), "eval_mrr")


def recall_at(
    rankings: Sequence[Sequence[int]], positives: Sequence[Collection[int]], k: int
) -> float:
    """Returns the share of relevant passages among the first k, averaged over queries.

    Args:
        rankings: for each query, the numbers of passages, best first.
        positives: for each query, the numbers of its relevant passages, at least one.
        k: number of passages to look at.
    """
    shares = [
        len(set(positive) & set(ranking[:k])) / len(set(positive))
        for ranking, positive in zip(rankings, positives, strict=True)
    ]
    return sum(shares) / len(shares)


def mean_reciprocal_rank(
    rankings: Sequence[Sequence[int]], positives: Sequence[Collection[int]]
) -> float:
    """Returns the mean of 1 / rank of each query's first relevant passage.

    A query without a relevant passage among the first `MRR_DEPTH` counts as 0.

    Args:
        rankings, positives: as for `recall_at`.

    Example:
        >>> mean_reciprocal_rank([[7, 3], [5, 9], [1, 2]], [{3}, {5}, {4}])
        0.5
    """
    reciprocals = []
    for ranking, positive in zip(rankings, positives, strict=True):
        first = ranking[:MRR_DEPTH]
        ranks = (rank for rank, number in enumerate(first, 1) if number in positive)
        reciprocals.append(1 / next(ranks, math.inf))
    return sum(reciprocals) / len(reciprocals)


def all_scores(
    rankings: Sequence[Sequence[int]],
    positives: Sequence[Collection[int]],
) -> dict[str, float]:
    """Returns `eval_recall_at_K` for each K, and `eval_mrr`."""
    scores = [recall_at(rankings, positives, k) for k in RECALL_AT]
    scores.append(mean_reciprocal_rank(rankings, positives))
    return dict(zip(_NAMES, scores, strict=True))


def scores_by_chance(
    num_passages: int, positives: Sequence[Collection[int]]
) -> dict[str, float]:
    """Returns the expected `all_scores` of rankings in random order.

    Args:
        num_passages: number N of different passages.
        positives: see `recall_at`.

    Example:
        >>> scores_by_chance(4, [{2}])["eval_mrr"]
        0.5208333333333333
    """
    reciprocals = []
    for positive in positives:
        none_yet, mean = 1.0, 0.0
        for rank in range(1, min(MRR_DEPTH, num_passages) + 1):
            # The probability that this passage is right if none before it was.
            share = min(1.0, len(positive) / (num_passages - rank + 1))
            mean += none_yet * share / rank
            none_yet *= 1 - share
        reciprocals.append(mean)
    scores = [min(1.0, k / num_passages) for k in RECALL_AT]
    scores.append(sum(reciprocals) / len(reciprocals))
    return dict(zip(_NAMES, scores, strict=True))
