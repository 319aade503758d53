"""The text of a shard as word-piece ids in flat arrays.

Shape letters: P pieces, N sentences, D documents.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

import numpy as np

from bert_tf.pretraining_data import word_table

_CHARACTERS_PER_CALL = 1 << 20  # Tokenized together.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedText:
    """Documents of sentences of word pieces. No document or sentence is empty."""

    ids: np.ndarray  # int32 [P], the pieces of all sentences.
    sentence_starts: np.ndarray  # int64 [N + 1], first piece of each, then P.
    document_starts: np.ndarray  # int64 [D + 1], first sentence of each, then N.
    # bool [P], whether a piece begins a word. None: all without `##` do.
    starts_word: np.ndarray | None = None

    @property
    def num_sentences(self) -> int:
        """Number of sentences, N."""
        return len(self.sentence_starts) - 1

    @property
    def num_documents(self) -> int:
        """Number of documents, D."""
        return len(self.document_starts) - 1

    def split_sentences(self, max_pieces: int) -> "TokenizedText":
        """Returns the same text with longer sentences split into parts."""
        lengths = np.diff(self.sentence_starts)
        parts = -(-lengths // max_pieces)
        first = np.cumsum(parts) - parts
        place = np.arange(parts.sum()) - np.repeat(first, parts)
        starts = np.repeat(self.sentence_starts[:-1], parts) + place * max_pieces
        part_starts = np.append(first, parts.sum())
        return dataclasses.replace(
            self,
            sentence_starts=np.append(starts, len(self.ids)),
            document_starts=part_starts[self.document_starts],
        )


def tokenize_documents(
    documents: Iterable[list[str]],
    table: word_table.WordTable,
    on_progress: Callable[[int], None],
) -> TokenizedText:
    """Tokenizes documents; drops sentences without pieces and documents without any.

    Args:
        documents: lists of sentences.
        table: the tokenizer.
        on_progress: called with the number of characters finished so far.
    """
    batches, document_of, num_done = [table.tokenize([])], [], 0
    for sentences, numbers in _batches(documents):
        batches.append(table.tokenize(sentences))
        document_of += numbers
        num_done += sum(map(len, sentences))
        on_progress(num_done)
    return _assembled(batches, np.array(document_of, np.int64))


def _assembled(batches, document_of):
    lengths = np.concatenate([batch.counts for batch in batches])
    has_pieces = lengths > 0
    lengths, document_of = lengths[has_pieces], document_of[has_pieces]
    changes = np.flatnonzero(np.diff(document_of, prepend=-1))
    starts_word = None
    if batches[0].starts_word is not None:
        starts_word = np.concatenate([batch.starts_word for batch in batches])
    return TokenizedText(
        ids=np.concatenate([batch.ids for batch in batches]),
        sentence_starts=np.concatenate([[0], np.cumsum(lengths)]),
        document_starts=np.append(changes, len(lengths)),
        starts_word=starts_word,
    )


def _batches(documents) -> Iterator[tuple[list[str], list[int]]]:
    """Yields batches of sentences with the indices of their documents."""
    sentences: list[str] = []
    numbers: list[int] = []
    size = 0
    for number, document in enumerate(documents):
        for sentence in document:
            sentences.append(sentence)
            numbers.append(number)
            size += len(sentence)
            if size >= _CHARACTERS_PER_CALL:
                yield sentences, numbers
                sentences, numbers, size = [], [], 0
    if sentences:
        yield sentences, numbers
