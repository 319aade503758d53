"""Texts of the demo: sample text of the package, or the user's own."""

import collections
import dataclasses
import os
import re
from collections.abc import Iterable
from collections.abc import Iterator

from bert_tf import files

SAMPLE_DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "sample_data")
MIN_DOCUMENTS = 4  # Next-sentence examples need two, in training and held-out text.
NUM_FUNCTION_WORDS = 150
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


def masked_texts(
    path: str, count: int, *, train_file: str | None = None, vocab_file: str = ""
) -> list[MaskedText]:
    """Returns sentences of 6 to 16 words with one word masked, spread over a text.

    With a `train_file`, the masked word is a content word that can be learned: a single
    word piece, not among the `NUM_FUNCTION_WORDS` most frequent words of the training
    text, and of those the most frequent one. Otherwise it is the word in the middle.

    Args:
        path: text with one sentence per line.
        count: maximum number of sentences.
        train_file: the text of the training.
        vocab_file: the vocabulary. Required with `train_file`.
    """
    counts = word_counts(train_file) if train_file else collections.Counter()
    # A very small text has fewer.
    num_function_words = min(NUM_FUNCTION_WORDS, len(counts) // 4)
    function_words = {word for word, _ in counts.most_common(num_function_words)}
    pieces = set(files.read_lines(vocab_file)) if vocab_file else set(counts)
    found: list[MaskedText] = []
    for line in files.read_lines(path):
        words = line.split()
        if not 6 <= len(words) <= 16:
            continue
        middle = len(words) // 2
        places = [middle]
        if train_file:
            places = [
                place
                for place, word in enumerate(words)
                if word.lower() in pieces - function_words and counts[word.lower()]
            ]
        places = [place for place in places if words[place].isalpha()]
        if places:
            chosen = max(places, key=lambda place: counts[words[place].lower()])
            text = [*words[:chosen], "[MASK]", *words[chosen + 1 :]]
            found.append(MaskedText(text=" ".join(text), word=words[chosen]))
    return (
        found[:: max(1, len(found) // count)][:count] if train_file else found[:count]
    )


def word_counts(path: str) -> collections.Counter[str]:
    """Returns how often each word is in a text, in lower case."""
    return collections.Counter(
        word.lower()
        for line in files.read_lines(path)
        for word in line.split()
        if word.isalpha()
    )


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
