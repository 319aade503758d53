"""What a model says about each word, and the file that holds it."""

import os
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf.tasks.token_classification import column_files

PREDICTIONS_FILE = "test_predictions.txt"


def best_tags(logits: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Returns the likeliest tag of each word.

    Args:
        logits: float [W, C].
        labels: the C tags.
    """
    return [labels[index] for index in np.argmax(logits, axis=-1)]


def write_predictions(
    output_dir: str, test_file: str, tag_column: int, tags: Sequence[str]
) -> str:
    """Writes `test_predictions.txt` and returns its path.

    It is the file to predict with the tags in their column, or in one more where it
    had none; other columns, blank lines and the starts of documents stay as they are.

    Args:
        output_dir: an existing folder.
        test_file: the column file that the words came from.
        tag_column: the tags' column, counted from 0.
        tags: of all its words, in order.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the file has another number of words by now.
    """
    path = os.path.join(output_dir, PREDICTIONS_FILE)
    rest = iter(tags)
    with files.complete_or_absent(path) as file:
        for line in column_files.read_lines(test_file):
            text = line.text
            if line.is_word:
                tag = next(rest, None)
                if tag is None:
                    raise ValueError(
                        f"{test_file} has more words than tags were predicted "
                        f"({len(tags)}); it was changed meanwhile, so predict again."
                    )
                text = line.with_cell(tag_column, tag)
            file.write(text + "\n")
    return path
