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
        ValueError: the numbers of sentences or words differ or are 0.

    Source: conlleval of CoNLL-2000.
    """
    hits = [
        true == predicted_tag
        for sentence, predicted_sentence in zip(tags, predicted, strict=True)
        for true, predicted_tag in zip(sentence, predicted_sentence, strict=True)
    ]
    if not hits:
        raise ValueError("Expected at least one word to score, got none.")
    accuracy = {"accuracy": float(np.mean(hits))}
    if scheme == schemes.NONE:
        return accuracy
    counts = _entity_counts(tags, predicted, scheme)
    names = ("precision", "recall", "f1")
    return accuracy | dict(zip(names, _ratios(*counts), strict=True))


def plot_values(
    tags: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    scheme: str,
) -> dict[str, Any]:
    """Returns baselines and confusion matrix.

    The confusion matrix counts words. Its classes are the types of entities and "O"; if
    the tags mark no entities, they are the tags.

    Args:
        tags: the correct tags of each sentence.
        predicted: the predicted tags of each sentence.
        scheme: one of `schemes.SCHEMES`.
    """
    true = collections.Counter(itertools.chain.from_iterable(tags))
    [(constant, _)] = true.most_common(1)
    baselines = tag_scores(tags, [[constant] * len(s) for s in tags], scheme)
    types, predicted_types = (
        [schemes.type_of(tag, scheme) for sentence in sentences for tag in sentence]
        for sentences in (tags, predicted)
    )
    labels = sorted({*types, *predicted_types})
    labels.sort(key=lambda label: label == schemes.OUTSIDE)  # "O" comes last.
    numbers = {label: number for number, label in enumerate(labels)}
    return {
        "baselines": {
            f"eval_{name}": plots.baseline(MOST_FREQUENT_TAG, value)
            for name, value in baselines.items()
        },
        "confusion": plots.confusion_data(
            [numbers[one] for one in types],
            [numbers[one] for one in predicted_types],
            labels,
        ),
    }


def _entity_counts(tags, predicted, scheme):
    """Returns the numbers of entities that are right, predicted and true."""
    counts = np.zeros(3, int)
    for pair in zip(tags, predicted, strict=True):
        true, guessed = (set(schemes.entities(one, scheme)) for one in pair)
        counts += [len(true & guessed), len(guessed), len(true)]
    return counts


def _ratios(hits, num_predicted, num_true):
    """Returns precision, recall and F1; 0 / 0 is 0."""
    precision = float(hits / max(num_predicted, 1))
    recall = float(hits / max(num_true, 1))
    return precision, recall, 2 * precision * recall / ((precision + recall) or 1.0)
