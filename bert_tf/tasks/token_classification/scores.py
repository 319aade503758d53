"""Scores of predicted tags: accuracy over words, and F1 over whole entities."""

import collections
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.tasks.token_classification import schemes
from bert_tf.training import plots

MOST_FREQUENT_TAG = "most frequent tag"


def tag_scores(
    tags: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    scheme: str,
) -> dict[str, float]:
    """Returns the scores of predicted tags.

    Args:
        tags: the correct tags of each sentence.
        predicted: the predicted tags of each sentence.
        scheme: one of `schemes.SCHEMES`.

    Returns:
        `accuracy` over words. Unless the scheme is "none" also `precision`, `recall`
        and `f1` over the entities of all types. An entity is correct if its type and
        its first and last word are. A score of 0 / 0 is 0.

    Raises:
        ImportError: the package seqeval is not installed.
        ValueError: the numbers of sentences or words differ or are 0.

    Source: the package seqeval, which agrees with conlleval of CoNLL-2000.
    """
    hits = [
        true == found
        for sentence, found_sentence in zip(tags, predicted, strict=True)
        for true, found in zip(sentence, found_sentence, strict=True)
    ]
    if not hits:
        raise ValueError("Expected at least one word to score, got none.")
    accuracy = {"accuracy": float(np.mean(hits))}
    if scheme == schemes.NONE:
        return accuracy
    precision, recall, f1, _ = _seqeval().precision_recall_fscore_support(
        _as_iobes(tags, scheme),
        _as_iobes(predicted, scheme),
        average="micro",
        zero_division=0,
    )
    found = {"precision": precision, "recall": recall, "f1": f1}
    return accuracy | {name: float(value) for name, value in found.items()}


def report_by_type(
    tags: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    scheme: str,
) -> str:
    """Returns a text table with the scores of each entity type.

    Args:
        tags: the correct tags of each sentence.
        predicted: the predicted tags of each sentence.
        scheme: one of `schemes.SCHEMES` except "none".
    """
    return _seqeval().classification_report(
        _as_iobes(tags, scheme), _as_iobes(predicted, scheme), zero_division=0
    )


def plot_values(
    tags: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    scheme: str,
    calibration: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Returns baselines, confusion matrix and calibration.

    The confusion matrix counts words. Its classes are the types of entities and "O"; if
    the tags mark no entities, they are the tags.

    Args:
        tags: the correct tags of each sentence.
        predicted: the predicted tags of each sentence.
        scheme: one of `schemes.SCHEMES`.
        calibration: of the predicted tags.
    """
    true = list(itertools.chain.from_iterable(tags))
    [(constant, _)] = collections.Counter(true).most_common(1)
    baselines = tag_scores(tags, [[constant] * len(s) for s in tags], scheme)
    types = [schemes.type_of(tag, scheme) for tag in true]
    found = [
        schemes.type_of(tag, scheme) for tag in itertools.chain.from_iterable(predicted)
    ]
    labels = sorted({*types, *found} - {schemes.OUTSIDE})
    if schemes.OUTSIDE in {*types, *found}:
        labels.append(schemes.OUTSIDE)
    numbers = {label: number for number, label in enumerate(labels)}
    return {
        "baselines": {
            f"eval_{name}": plots.baseline(MOST_FREQUENT_TAG, value)
            for name, value in baselines.items()
        },
        "confusion": plots.confusion_data(
            [numbers[one] for one in types], [numbers[one] for one in found], labels
        ),
        "calibration": calibration,
    }


def check_available(scheme: str) -> None:
    """Checks before a long training that the package for scoring is installed.

    Raises:
        ImportError: the package seqeval is not installed.
    """
    if scheme != schemes.NONE:
        _seqeval()


def _as_iobes(sentences, scheme):
    return [schemes.convert_to_iobes(tags, scheme) for tags in sentences]


def _seqeval():
    try:
        from seqeval.metrics import sequence_labeling
    except ModuleNotFoundError:
        raise ImportError(
            "Scoring entities needs seqeval; install it with: pip install "
            "'bert_tf[entities]'"
        ) from None
    return sequence_labeling
