"""Texts of the demo: the package's or the user's, and what is asked of them."""

import dataclasses
import os
import re
from collections.abc import Iterator

from bert_tf import files

SAMPLE_DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "sample_data")
LEAST_DOCUMENTS = 4  # Two to train on, as next-sentence examples need, two held out.
_HELD_OUT_EVERY = 10  # A tenth of the user's documents is held out.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"'”’)])\s+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corpus:
    """Text to pretrain on, and text to evaluate on."""

    train_file: str  # A sentence a line, blank lines between documents.
    heldout_file: str  # Likewise; no document of it is in `train_file`.


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedText:
    """A sentence one word of which is hidden."""

    text: str  # With [MASK] where the word was.
    word: str  # The word.


def prepare_corpus(corpus_file: str | None, folder: str) -> Corpus:
    """Returns the package's corpus, or the user's, divided into two files.

    Args:
        corpus_file: the user's files, or None for the package's.
        folder: where the user's divided text is written.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the text is not UTF-8, or has fewer than `LEAST_DOCUMENTS`.
    """
    if corpus_file is None:
        return Corpus(
            train_file=sample_file("corpus.txt"),
            heldout_file=sample_file("corpus_heldout.txt"),
        )
    documents = [
        document
        for path in files.expand(corpus_file)
        for document in _documents(files.read_lines(path))
    ]
    if len(documents) < LEAST_DOCUMENTS:
        raise ValueError(
            f"{corpus_file} holds {len(documents)} documents; the demo needs "
            f"{LEAST_DOCUMENTS} or more. Put a blank line between documents."
        )
    is_held_out = [
        index % min(_HELD_OUT_EVERY, len(documents) // 2) == 0
        for index in range(len(documents))
    ]
    corpus = Corpus(
        train_file=os.path.join(folder, "train.txt"),
        heldout_file=os.path.join(folder, "heldout.txt"),
    )
    for path, wanted in ((corpus.train_file, False), (corpus.heldout_file, True)):
        kept = [
            d for d, held in zip(documents, is_held_out, strict=True) if held == wanted
        ]
        with files.complete_or_absent(path) as file:
            file.write("\n\n".join("\n".join(document) for document in kept) + "\n")
    return corpus


def sample_file(name: str) -> str:
    """Returns the path of a file that comes with the package."""
    path = os.path.join(SAMPLE_DATA, name)
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def masked_texts(path: str, count: int) -> list[MaskedText]:
    """Returns the first sentences of a usual length, the word in the middle hidden.

    Args:
        path: text with a sentence a line.
        count: the most sentences.
    """
    found = []
    for line in files.read_lines(path):
        words = line.split()
        if 6 <= len(words) <= 16 and words[len(words) // 2].isalpha():
            hidden = words[len(words) // 2]
            words[len(words) // 2] = "[MASK]"
            found.append(MaskedText(text=" ".join(words), word=hidden))
        if len(found) == count:
            break
    return found


def labelled_rows(path: str) -> list[tuple[str, str]]:
    """Returns (text, label) of a table with those two columns."""
    rows = [line.split("\t") for line in files.read_lines(path)]
    return [(text, label) for text, label in rows[1:]]


def _documents(lines) -> Iterator[list[str]]:
    """Yields the sentences of each paragraph; one in a single line is divided."""
    sentences = []
    for line in [*lines, ""]:
        if line.strip():
            sentences.append(line.strip())
        elif sentences:
            yield (
                _SENTENCE_END.split(sentences[0]) if len(sentences) == 1 else sentences
            )
            sentences = []
