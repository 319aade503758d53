"""Texts of the demo: sample text of the package, or the user's own."""

import dataclasses
import os
import re
from collections.abc import Iterable
from collections.abc import Iterator

from bert_tf import files

SAMPLE_DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "sample_data")
MIN_DOCUMENTS = 4  # Next-sentence examples need two, in training and held-out text.
_HELD_OUT_EVERY = 10  # Every tenth document of the user is held out.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"'”’)])\s+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corpus:
    """Text to pretrain on and text to evaluate on.

    Both files have one sentence per line and blank lines between documents.
    """

    train_file: str
    heldout_file: str  # Contains no document of `train_file`.


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedText:
    """A sentence with one masked word."""

    text: str  # With [MASK].
    word: str  # The masked word.


def prepare_corpus(corpus_file: str | None, folder: str) -> Corpus:
    """Returns the corpus of the package or of the user, split into two files.

    Args:
        corpus_file: the user's files, or None for the text of the package.
        folder: folder for the two files of the user's text.

    Raises:
        ValueError: the text is not UTF-8, or has fewer than `MIN_DOCUMENTS` documents.
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
    if len(documents) < MIN_DOCUMENTS:
        raise ValueError(
            f"{corpus_file} contains {len(documents)} documents, but the demo needs at "
            f"least {MIN_DOCUMENTS}. Put a blank line between documents."
        )
    is_held_out = [
        index % min(_HELD_OUT_EVERY, len(documents) // 2) == 0
        for index in range(len(documents))
    ]
    corpus = Corpus(
        train_file=os.path.join(folder, "train.txt"),
        heldout_file=os.path.join(folder, "heldout.txt"),
    )
    pairs = list(zip(documents, is_held_out, strict=True))
    for path, is_heldout in ((corpus.train_file, False), (corpus.heldout_file, True)):
        kept = [document for document, held_out in pairs if held_out == is_heldout]
        with files.complete_or_absent(path) as file:
            file.write("\n\n".join("\n".join(document) for document in kept) + "\n")
    return corpus


def sample_file(name: str) -> str:
    """Returns the path of a sample file of the package."""
    path = os.path.join(SAMPLE_DATA, name)
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def masked_texts(path: str, count: int) -> list[MaskedText]:
    """Returns the first sentences of 6 to 16 words with the middle word masked.

    Args:
        path: text with one sentence per line.
        count: maximum number of sentences.
    """
    found: list[MaskedText] = []
    for line in files.read_lines(path):
        words = line.split()
        if 6 <= len(words) <= 16 and words[len(words) // 2].isalpha():
            masked = words[len(words) // 2]
            words[len(words) // 2] = "[MASK]"
            found.append(MaskedText(text=" ".join(words), word=masked))
        if len(found) == count:
            break
    return found


def labelled_rows(path: str) -> list[tuple[str, str]]:
    """Returns the (text, label) rows of a table with these two columns."""
    rows = [line.split("\t") for line in files.read_lines(path)]
    return [(text, label) for text, label in rows[1:]]


def _documents(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yields the sentences of each paragraph. A one-line paragraph is split."""
    sentences: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            sentences.append(line.strip())
        elif sentences:
            yield (
                _SENTENCE_END.split(sentences[0]) if len(sentences) == 1 else sentences
            )
            sentences = []
