"""Which tags a model chooses from, in the order of its outputs."""

from bert_tf import files
from bert_tf.tasks.token_classification import schemes


def given_labels(options) -> tuple[str, ...]:
    """Returns the tags of --labels or --label_list, () where neither is given.

    Args:
        options: `RunNerOptions`.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has fewer than two tags, or one of them twice.
    """
    path = options.label_list
    if path is None:
        return options.labels
    labels = tuple(line.strip() for line in files.read_lines(path) if line.strip())
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise ValueError(
            f"{path}: expected two or more different tags, a tag a line, got "
            f"{', '.join(labels)[:80] or 'none'}."
        )
    return labels


def labels_of_training(path: str, tags, scheme: str) -> list[str]:
    """Returns the tags that the model of a file to train on chooses from.

    Args:
        path: the file, for messages.
        tags: those of each of its sentences.
        scheme: one of `schemes.SCHEMES`.

    Raises:
        ValueError: every word has the same tag.
    """
    seen = {tag for sentence in tags for tag in sentence}
    if len(seen) == 1:
        raise ValueError(
            f"{path}: every word has the tag {min(seen)!r}; expected at least two "
            "(--tag_column)."
        )
    return schemes.labels_of(seen, scheme)
