"""Chooses the examples of a table that are held out for evaluation."""

import collections
import hashlib
import json
from collections.abc import Sequence

import numpy as np

from bert_tf.data import text_checks


def held_out(
    texts: Sequence[Sequence[str]], strata: Sequence[int], *, share: float, seed: int
) -> np.ndarray:
    """Returns which examples are held out, as bool [N].

    The choice depends only on the arguments. Examples with the same first text,
    ignoring case and white space, are on the same side: otherwise the model would be
    evaluated on texts that it was trained on. Each stratum has about the same share on
    both sides and keeps at least one text for training.

    Args:
        texts: the texts of each of N examples.
        strata: the stratum of each example, such as the index of its class.
        share: share of the examples to hold out.
        seed: a different seed gives a different choice.

    Raises:
        ValueError: no example can be held out.
    """
    keys = [[text_checks.text_key(text) for text in example] for example in texts]
    groups = _groups(keys)
    num_left = collections.Counter(strata[group[0]] for group in groups)
    # A few large groups would make the hold-out much too large or too small.
    groups = [group for group in groups if len(group) <= max(share * len(keys) / 2, 1)]
    groups.sort(key=lambda group: (strata[group[0]], _rank(keys[group[0]], seed)))
    share_of_groups = min(share * len(keys) / max(sum(map(len, groups)), 1), 0.5)
    chosen = np.zeros(len(keys), bool)
    num_chosen = 0
    for num_seen, group in enumerate(groups, start=1):
        stratum = strata[group[0]]
        if num_left[stratum] > 1 and num_chosen + 0.5 <= share_of_groups * num_seen:
            chosen[group] = True
            num_chosen += 1
            num_left[stratum] -= 1
    if not num_chosen:
        raise ValueError(
            f"--validation_split={share:g} of {len(texts):,} examples holds out none: "
            "there are too few, or each class has one text, or all examples have the "
            "same first text. Use a larger share, or separate examples for evaluation."
        )
    return chosen


def fingerprint(texts: Sequence[Sequence[str]]) -> str:
    """Returns the SHA-256 of texts, in any order."""
    lines = sorted(json.dumps(list(example)) for example in texts)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _groups(keys):
    """Returns lists of the indices of examples with the same first text."""
    groups = collections.defaultdict(list)
    for index, example in enumerate(keys):
        # Pairs without a first text are the same if their second one is.
        groups[example[0] or tuple(example)].append(index)
    return list(groups.values())


def _rank(keys, seed):
    return hashlib.sha256(json.dumps([seed, *keys]).encode()).digest()
