"""Whether a score shows that a model has learned something.

Imports nothing, so that a program that only reports scores starts fast.
"""

# A score must cover this share of the distance from the baseline to a perfect score.
MARGIN = 0.02
NOT_LEARNED = "not learned"


def verdict(
    name: str,
    score: float,
    baseline: float | None,
    *,
    perfect: float | None = None,
) -> str:
    """Returns "not learned" if a score is hardly better than its baseline.

    Args:
        name: of the score. A loss or a perplexity is better if it is lower.
        score: of the model.
        baseline: the score of the simplest prediction. None: unknown.
        perfect: the best possible score; losses ignore it. None: 100 if the score or
            the baseline is above 1, else 1.

    Returns:
        `NOT_LEARNED`, or "" if the score is clearly better or there is no baseline.

    Example:
        >>> verdict("eval_accuracy", 0.51, baseline=0.5)
        'not learned'
    """
    if baseline is None:
        return ""
    if name.endswith(("loss", "perplexity")):
        learned = score < baseline * (1 - MARGIN)
    else:
        if perfect is None:
            perfect = 100 if max(score, baseline) > 1 else 1
        learned = score > baseline + MARGIN * (perfect - baseline)
    return "" if learned else NOT_LEARNED
