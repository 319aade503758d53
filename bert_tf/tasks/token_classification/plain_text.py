"""Plain text to tag, a sentence a line, and the file of its tags."""

import json
import os
from collections.abc import Sequence

from bert_tf import files
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import words as words_module

PREDICTIONS_FILE = "predictions.jsonl"


def read_sentences(path: str) -> list[examples.Sentence]:
    """Returns the lines of a text that have words, each a document by itself.

    Args:
        path: UTF-8; words are found as `words.split_text` does.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not UTF-8, or has no words.
    """
    sentences = [
        examples.Sentence(words=found.words, document=number, lines=(number,))
        for number, line in enumerate(files.read_lines(path), start=1)
        if (found := words_module.split_text(line)).words
    ]
    if not sentences:
        raise ValueError(f"{path} has no words; expected a sentence in a line.")
    return sentences


def write_predictions(output_dir: str, path: str, tags: Sequence[str]) -> str:
    """Writes predictions.jsonl, an object for each line of a text; returns its path.

    An object has `line`, its number from 1, and `words`, `tags`, `starts` and `ends`,
    as `TokenClassificationPredictor.predict` gives them.

    Args:
        output_dir: an existing folder.
        path: the text that the words came from.
        tags: of all its words, in order.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the text has another number of words by now.
    """
    target = os.path.join(output_dir, PREDICTIONS_FILE)
    place = 0
    with files.complete_or_absent(target) as file:
        for number, line in enumerate(files.read_lines(path), start=1):
            found = words_module.split_text(line)
            own = list(tags[place : place + len(found.words)])
            place += len(found.words)
            record = {"line": number, "words": found.words, "tags": own}
            record |= {"starts": found.starts, "ends": found.ends}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        if place != len(tags):
            raise ValueError(
                f"{path} has {place} words, but {len(tags)} tags were predicted; it "
                "was changed meanwhile, so predict again."
            )
    return target
