"""What the plots of a token classification run need; see `training.plot_data`."""

import collections
import itertools
from collections.abc import Sequence
from typing import Any

from bert_tf.tasks.token_classification import schemes
from bert_tf.tasks.token_classification import scores
from bert_tf.training import plot_data

MOST_FREQUENT_TAG = "most frequent tag"


def values_of(
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
    baselines = scores.tag_scores(tags, [[constant] * len(s) for s in tags], scheme)
    types = [_type_of(tag, scheme) for tag in true]
    found = [_type_of(tag, scheme) for tag in itertools.chain.from_iterable(predicted)]
    labels = sorted({*types, *found} - {schemes.OUTSIDE})
    if schemes.OUTSIDE in {*types, *found}:
        labels.append(schemes.OUTSIDE)
    numbers = {label: number for number, label in enumerate(labels)}
    return {
        "baselines": {
            f"eval_{name}": plot_data.baseline(MOST_FREQUENT_TAG, value)
            for name, value in baselines.items()
        },
        "confusion": plot_data.confusion(
            [numbers[one] for one in types], [numbers[one] for one in found], labels
        ),
        "calibration": calibration,
    }


def _type_of(tag, scheme):
    return tag if scheme == schemes.NONE else schemes.split_tag(tag)[1] or tag
