"""Determines the tags of a model, in the order of its outputs."""

import collections
from collections.abc import Iterable
from collections.abc import Sequence

from bert_tf import files
from bert_tf.data import label_names
from bert_tf.tasks.token_classification import options as token_classification_options
from bert_tf.tasks.token_classification import schemes


def given_labels(
    options: token_classification_options.RunNerOptions,
) -> tuple[str, ...]:
    """Returns the tags of --labels or --label_list, or () if neither is set.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has fewer than two tags or contains a tag twice.
    """
    path = options.label_list
    if path is None:
        return options.labels
    labels = tuple(line.strip() for line in files.read_lines(path) if line.strip())
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise ValueError(
            f"{path}: expected at least two different tags, one per line, got "
            f"{', '.join(labels)[:80] or 'none'}."
        )
    return labels


def labels_of_training(
    path: str, tags: Iterable[Sequence[str]], scheme: str
) -> list[str]:
    """Returns the tags of a model that is trained on a file.

    Args:
        path: the file, for error messages.
        tags: the tags of each sentence.
        scheme: one of `schemes.SCHEMES`.

    Raises:
        ValueError: every word has the same tag, two tags differ only in case, or a tag
            stands for a missing value.
    """
    seen = collections.Counter(tag for sentence in tags for tag in sentence)
    missing = list(filter(label_names.is_missing, seen))
    if missing:
        raise ValueError(
            f"{path}: {seen[missing[0]]:,} words have the tag {missing[0]!r}, which "
            "stands for a missing value; correct it, or list all tags in --labels."
        )
    label_names.check_spellings(
        path, seen, "Correct them, or list all tags in --labels."
    )
    if len(seen) == 1:
        raise ValueError(
            f"{path}: every word has the tag {min(seen)!r}; expected at least two "
            "different tags (see --tag_column)."
        )
    return schemes.labels_of(seen, scheme)
