"""Reads plain text to tag, one sentence per line, and writes the predicted tags."""

import json
import os
from collections.abc import Collection
from collections.abc import Sequence

from bert_tf import files
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import words as words_module
from bert_tf.training import result_files

PREDICTIONS_FILE = "predictions.jsonl"


def read_sentences(
    path: str, *, whole_words: Collection[str] = frozenset()
) -> list[examples.Sentence]:
    """Returns the sentences of a text file; each one is its own document.

    Args:
        path: the file, in UTF-8. Lines without words are skipped; see
            `words.split_text`.
        whole_words: see `words.split_text`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8 or has no words.
    """
    sentences = [
        examples.Sentence(words=found.words, document=number, lines=(number,))
        for number, line in enumerate(files.read_lines(path), start=1)
        if (found := words_module.split_text(line, whole_words)).words
    ]
    if not sentences:
        raise ValueError(f"{path} has no words; expected one sentence per line.")
    return sentences


def write_predictions(
    output_dir: str,
    path: str,
    tags: Sequence[str],
    *,
    whole_words: Collection[str] = frozenset(),
    suffix: str = "",
) -> str:
    """Writes predictions.jsonl with one object per line of a text; returns its path.

    An object has the number of the `line` from 1, and `words`, `tags`, `starts` and
    `ends` as returned by `TokenClassificationPredictor.predict`.

    Args:
        output_dir: an existing folder.
        path: the text file that was tagged.
        tags: the tags of all its words, in order.
        whole_words: those that `read_sentences` was called with.
        suffix: added to the file's name; see `result_files.suffix_of`.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the number of words in the file has changed.
    """
    name = result_files.with_suffix(PREDICTIONS_FILE, suffix)
    target = os.path.join(output_dir, name)
    place = 0
    with files.complete_or_absent(target) as file:
        for number, line in enumerate(files.read_lines(path), start=1):
            found = words_module.split_text(line, whole_words)
            own = list(tags[place : place + len(found.words)])
            place += len(found.words)
            record = {"line": number, "words": found.words, "tags": own}
            record |= {"starts": found.starts, "ends": found.ends}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        if place != len(tags):
            raise ValueError(
                f"{path} has {place} words, but {len(tags)} tags were predicted; the "
                "file has changed, so predict again."
            )
    return target
