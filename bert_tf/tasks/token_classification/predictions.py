"""Predicts the tags of words from logits and writes them to a column file."""

import os
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf.tasks.token_classification import column_files
from bert_tf.training import result_files

PREDICTIONS_FILE = "test_predictions.txt"


def best_tags(logits: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Returns the most probable tag of each word.

    Args:
        logits: float [W, C].
        labels: the C tags.
    """
    return [labels[index] for index in np.argmax(logits, axis=-1)]


def write_predictions(
    output_dir: str,
    test_file: str,
    tag_column: int,
    tags: Sequence[str],
    *,
    suffix: str = "",
) -> str:
    """Writes `test_predictions.txt` and returns its path.

    It is a copy of the test file with the predicted tags in the tag column, which is
    appended if the file lacks it.

    Args:
        output_dir: an existing folder.
        test_file: the column file that was tagged.
        tag_column: index of the tag column, counted from 0.
        tags: the tags of all words, in order.
        suffix: added to the file's name; see `result_files.suffix_of`.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the file has more words than there are tags.
    """
    name = result_files.with_suffix(PREDICTIONS_FILE, suffix)
    path = os.path.join(output_dir, name)
    rest = iter(tags)
    with files.complete_or_absent(path) as file:
        for line in column_files.read_lines(test_file):
            text = line.text
            if line.is_word:
                tag = next(rest, None)
                if tag is None:
                    raise ValueError(
                        f"{test_file} has more words than there are predicted tags "
                        f"({len(tags)}); the file has changed, so predict again."
                    )
                text = line.with_cell(tag_column, tag)
            file.write(text + "\n")
    return path
