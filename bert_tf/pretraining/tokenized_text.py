"""A shard's text as word-piece ids in flat arrays."""

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

import numpy as np

from bert_tf.pretraining import word_table

_CHARACTERS_A_BATCH = 1 << 20  # Tokenized in one call.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedText:
    """Documents of sentences of word pieces; none of them empty."""

    ids: np.ndarray  # int32 [P], the pieces of all sentences.
    sentence_starts: np.ndarray  # int64 [N + 1], first piece of each; last: P.
    document_starts: np.ndarray  # int64 [D + 1], first sentence of each; last: N.

    @property
    def num_sentences(self) -> int:
        """Sentences of all documents."""
        return len(self.sentence_starts) - 1

    @property
    def num_documents(self) -> int:
        """Documents there are."""
        return len(self.document_starts) - 1

    def split_sentences(self, max_pieces: int) -> "TokenizedText":
        """Returns the same text with sentences cut so that none is longer."""
        lengths = np.diff(self.sentence_starts)
        parts = -(-lengths // max_pieces)
        first = np.cumsum(parts) - parts
        place = np.arange(parts.sum()) - np.repeat(first, parts)
        starts = np.repeat(self.sentence_starts[:-1], parts) + place * max_pieces
        part_starts = np.append(first, parts.sum())
        return TokenizedText(
            ids=self.ids,
            sentence_starts=np.append(starts, len(self.ids)),
            document_starts=part_starts[self.document_starts],
        )


def tokenize_documents(
    documents: Iterable[list[str]],
    table: word_table.WordTable,
    on_progress: Callable[[int], None],
) -> TokenizedText:
    """Returns documents as ids.

    Sentences without pieces are dropped, and then documents without sentences.

    Args:
        documents: lists of sentences.
        table: tokenizes.
        on_progress: called with the number of characters done so far.
    """
    flat, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    document_of, num_done = [np.zeros(0, np.int64)], 0
    for sentences, numbers in _batches(documents):
        ids, sizes = table.tokenize(sentences)
        flat.append(ids)
        lengths.append(sizes)
        document_of.append(np.array(numbers, np.int64))
        num_done += sum(map(len, sentences))
        on_progress(num_done)
    return _assembled(
        np.concatenate(flat), np.concatenate(lengths), np.concatenate(document_of)
    )


def _assembled(ids, lengths, document_of):
    has_pieces = lengths > 0
    lengths, document_of = lengths[has_pieces], document_of[has_pieces]
    changes = np.flatnonzero(np.diff(document_of, prepend=-1))
    return TokenizedText(
        ids=ids,
        sentence_starts=np.concatenate([[0], np.cumsum(lengths)]),
        document_starts=np.append(changes, len(lengths)),
    )


def _batches(documents) -> Iterator[tuple[list[str], list[int]]]:
    """Yields batches of sentences with the numbers of their documents."""
    sentences, numbers, size = [], [], 0
    for number, document in enumerate(documents):
        for sentence in document:
            sentences.append(sentence)
            numbers.append(number)
            size += len(sentence)
            if size >= _CHARACTERS_A_BATCH:
                yield sentences, numbers
                sentences, numbers, size = [], [], 0
    if sentences:
        yield sentences, numbers
