"""Sentence pairs, drawn one by one as the release did."""

import dataclasses
import random
from collections.abc import Iterator
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentencePair:
    """Two segments and whether the second really follows the first."""

    tokens_a: tuple[str, ...]  # Word pieces of the first segment.
    tokens_b: tuple[str, ...]  # Word pieces of the second segment.
    is_random_next: bool  # True: B comes from another document.


class PairSampler:
    """Draws the sentence pairs of documents.

    Args:
        documents: lists of sentences, which are lists of word pieces; none empty.
        rng: every draw comes from it, in the release's order.
        max_tokens: the most pieces of A and B together.
        short_seq_prob: probability that a document's sequences are made shorter.

    Source: create_instances_from_document of create_pretraining_data.py, 2018.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[Sequence[str]]],
        rng: random.Random,
        *,
        max_tokens: int,
        short_seq_prob: float,
    ):
        self._documents = documents
        self._rng = rng
        self._max_tokens = max_tokens
        self._short_seq_prob = short_seq_prob

    def pairs(self, document_index: int) -> Iterator[SentencePair]:
        """Yields the pairs of one pass over a document.

        Between two pairs the caller may draw from the same `rng`: the release draws a
        pair's masks before the next pair.
        """
        document = self._documents[document_index]
        target = self._max_tokens
        if self._rng.random() < self._short_seq_prob:
            target = self._rng.randint(2, self._max_tokens)
        start = 0
        while start < len(document):
            chunk = _chunk(document, start, target)
            pair, num_used = self._pair(chunk, document_index, target)
            start += num_used
            yield pair

    def _pair(self, chunk, document_index, target):
        """Returns a pair and how many sentences of the chunk it has used up."""
        a_end = self._rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        tokens_a = _joined(chunk[:a_end])
        is_random_next = len(chunk) == 1 or self._rng.random() < 0.5
        if is_random_next:
            tokens_b = self._random_tokens(document_index, target - len(tokens_a))
        else:
            tokens_b = _joined(chunk[a_end:])
        self._truncate(tokens_a, tokens_b)
        pair = SentencePair(
            tokens_a=tuple(tokens_a),
            tokens_b=tuple(tokens_b),
            is_random_next=is_random_next,
        )
        # What follows A was not used, so the next chunk starts with it.
        return pair, a_end if is_random_next else len(chunk)

    def _random_tokens(self, document_index, num_wanted):
        """Returns sentences from a random place of another document."""
        for _ in range(10):
            other = self._rng.randint(0, len(self._documents) - 1)
            if other != document_index:
                break
        document = self._documents[other]
        start = self._rng.randint(0, len(document) - 1)
        tokens = []
        for sentence in document[start:]:
            tokens += sentence
            if len(tokens) >= num_wanted:
                break
        return tokens

    def _truncate(self, tokens_a, tokens_b):
        """Shortens the longer list by its first or last piece until both fit."""
        while len(tokens_a) + len(tokens_b) > self._max_tokens:
            longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
            if self._rng.random() < 0.5:
                del longer[0]
            else:
                longer.pop()


def _chunk(document, start, target):
    """Returns sentences from `start` on, until they have `target` pieces."""
    num_tokens = 0
    for end in range(start, len(document)):
        num_tokens += len(document[end])
        if num_tokens >= target:
            return document[start : end + 1]
    return document[start:]


def _joined(sentences):
    return [token for sentence in sentences for token in sentence]
