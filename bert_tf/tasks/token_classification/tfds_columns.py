"""Converts data sets of TensorFlow Datasets into column files."""

from collections.abc import Iterator

from bert_tf.data import named_datasets

_WORDS = "tokens"
# Written as the last column, whose tags are learned by default.
_TAGS = ("ner", "tags")


def lines_of(data: named_datasets.DataSet, split: str) -> Iterator[str]:
    """Yields the lines of a column file: words, then their tags.

    The columns are the words, the other sequences of classes, and the entity tags:
    tokens, pos, chunks and ner for conll2003, as in CoNLL's own files.

    Args:
        data: a data set such as conll2003 or wikiann/de, one sentence per record.
        split: of it.

    Raises:
        ValueError: the data set has no words with tags, or a word is empty.
    """
    tags = _tag_columns(data.features)
    for record in data.records(split):
        words = [" ".join(word.split()) for word in record[_WORDS]]
        for cells in zip(words, *(record[name] for name in tags), strict=True):
            yield "\t".join(cells) + "\n"
        yield "\n"


def _tag_columns(features):
    """Returns the names of the sequences of classes; the entity tags come last."""
    found = [
        name
        for name, feature in features.items()
        if hasattr(getattr(feature, "feature", None), "names")
    ]
    if _WORDS not in features or not found:
        raise ValueError(
            f"The TensorFlow dataset has the columns {', '.join(features)}; expected "
            f"{_WORDS} and a sequence of classes of the same length, as in conll2003."
        )
    return sorted(found, key=lambda name: name in _TAGS)
