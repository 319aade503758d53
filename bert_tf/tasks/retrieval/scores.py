"""How high the right passages stand in the rankings."""

from collections.abc import Collection
from collections.abc import Sequence


def recall_at(
    rankings: Sequence[Sequence[int]], positives: Sequence[Collection[int]], k: int
) -> float:
    """Returns the mean share of each query's right passages among its first k.

    Args:
        rankings: for each query numbers of passages, the best one first.
        positives: for each query the numbers of its right passages, one or more.
        k: places that count.

    Raises:
        ValueError: there are no queries, or a query has no right passage.
    """
    _check(rankings, positives)
    shares = [
        len(set(positive) & set(ranking[:k])) / len(set(positive))
        for ranking, positive in zip(rankings, positives, strict=True)
    ]
    return sum(shares) / len(shares)


def mean_reciprocal_rank(
    rankings: Sequence[Sequence[int]], positives: Sequence[Collection[int]]
) -> float:
    """Returns the mean of 1 / rank of the first right passage; 0 where there is none.

    Args:
        rankings, positives: as for `recall_at`.

    Raises:
        ValueError: there are no queries, or a query has no right passage.

    Example:
        >>> mean_reciprocal_rank([[7, 3], [5, 9], [1, 2]], [{3}, {5}, {4}])
        0.5
    """
    _check(rankings, positives)
    reciprocals = [
        next((1 / r for r, n in enumerate(ranking, start=1) if n in positive), 0.0)
        for ranking, positive in zip(rankings, positives, strict=True)
    ]
    return sum(reciprocals) / len(reciprocals)


def names_of(ks: Sequence[int], prefix: str = "eval_") -> list[str]:
    """Returns the names of the scores that `all_scores` gives."""
    return [f"{prefix}{name}" for name in (*(f"recall_at_{k}" for k in ks), "mrr")]


def all_scores(rankings, positives, ks: Sequence[int], prefix: str = "eval_") -> dict:
    """Returns `recall_at_K` for each K, and `mrr`, with a prefix before the names."""
    found = [recall_at(rankings, positives, k) for k in ks]
    found.append(mean_reciprocal_rank(rankings, positives))
    return dict(zip(names_of(ks, prefix), found, strict=True))


def _check(rankings, positives):
    if len(rankings) != len(positives) or not rankings:
        raise ValueError(
            "Expected as many rankings as queries and at least one, got "
            f"{len(rankings)} and {len(positives)}."
        )
    if not all(positives):
        raise ValueError("Expected a right passage for every query.")
