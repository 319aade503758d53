"""Sentence pairs, drawn for all documents of a shard at once.

The distributions are those of `release_pairs.PairSampler`, which gives the reasons for
each draw. There is one difference: B never comes from A's document, whereas the release
gives up after ten tries. All passes over all documents advance chunk by chunk together,
so that one NumPy call serves thousands of pairs.

Shape letter: I pairs.
"""

import dataclasses

import numpy as np

from bert_tf.pretraining_data import draws as draws_module
from bert_tf.pretraining_data import tokenized_text

# Passes that advance together; bounds the memory for many tiny documents.
_MAX_PASSES_AT_A_TIME = 1 << 17
_RANDOM_NEXT_PROB = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairTable:
    """Pairs as ranges of pieces in a `TokenizedText`; all arrays have the shape [I]."""

    start_a: np.ndarray  # int64, index of A's first piece.
    length_a: np.ndarray  # int64
    start_b: np.ndarray  # int64, index of B's first piece.
    length_b: np.ndarray  # int64; 0 if there is no B.
    is_random_next: np.ndarray  # bool, whether B comes from another document.

    def __len__(self) -> int:
        return len(self.start_a)

    def take(self, rows: np.ndarray) -> "PairTable":
        """Returns the table with only the given rows."""
        return PairTable(
            **{
                field.name: getattr(self, field.name)[rows]
                for field in dataclasses.fields(self)
            }
        )


def sample_pairs(
    text: tokenized_text.TokenizedText,
    draws: draws_module.Draws,
    *,
    max_tokens: int,
    short_seq_prob: float,
    dupe_factor: int,
) -> PairTable:
    """Returns the pairs of `dupe_factor` passes over the text, not in random order.

    Args:
        text: a text of at least two documents.
        draws: source of all draws.
        max_tokens: maximum number of pieces of A and B together.
        short_seq_prob: probability that a pass over a document makes shorter pairs.
        dupe_factor: number of passes over each document.
    """
    groups = [
        _chunks(text, passes, draws, max_tokens, short_seq_prob)
        for passes in _groups_of_passes(text, dupe_factor)
    ]
    chunks = {
        name: np.concatenate([group[name] for group in groups]) for name in groups[0]
    }
    starts = text.sentence_starts
    start_a, start_b = starts[chunks["first"]], starts[chunks["middle"]].copy()
    length_a = start_b - start_a
    length_b = starts[chunks["last"]] - start_b
    random = np.flatnonzero(chunks["is_random_next"])
    start_b[random], length_b[random] = _random_segments(
        text,
        draws,
        document=chunks["document"][random],
        num_wanted=chunks["target"][random] - length_a[random],
    )
    return _truncated(
        PairTable(
            start_a=start_a,
            length_a=length_a,
            start_b=start_b,
            length_b=length_b,
            is_random_next=chunks["is_random_next"],
        ),
        draws,
        max_tokens,
    )


def sample_sequences(
    text: tokenized_text.TokenizedText,
    draws: draws_module.Draws,
    *,
    max_tokens: int,
    short_seq_prob: float,
    dupe_factor: int,
) -> PairTable:
    """Returns runs of whole consecutive sentences of one document, as A without B.

    A run takes sentences as long as they fit. A sentence that is too long is split.
    The arguments are those of `sample_pairs`.
    """
    text = text.split_sentences(max_tokens)
    starts, lengths = [], []
    for passes in _groups_of_passes(text, dupe_factor):
        target = _targets(len(passes), draws, max_tokens, short_seq_prob)
        first, end = text.document_starts[passes], text.document_starts[passes + 1]
        while len(first):
            begin = text.sentence_starts[first]
            fits = np.searchsorted(text.sentence_starts, begin + target, "right") - 1
            after = np.clip(fits, first + 1, end)
            starts.append(begin)
            lengths.append(text.sentence_starts[after] - begin)
            goes_on = after < end
            first, end, target = after[goes_on], end[goes_on], target[goes_on]
    start_a, length_a = np.concatenate(starts), np.concatenate(lengths)
    nothing = np.zeros_like(start_a)
    return PairTable(
        start_a=start_a,
        length_a=length_a,
        start_b=nothing,
        length_b=nothing,
        is_random_next=nothing.astype(bool),
    )


def _groups_of_passes(text, dupe_factor):
    """Yields int64 arrays of document indices, each `dupe_factor` times in total."""
    documents = np.arange(text.num_documents)
    at_a_time = max(1, _MAX_PASSES_AT_A_TIME // len(documents))
    for done in range(0, dupe_factor, at_a_time):
        yield np.tile(documents, min(at_a_time, dupe_factor - done))


def _targets(count, draws, max_tokens, short_seq_prob):
    """Returns the target length of each pass in pieces: int64 [count]."""
    is_short = draws.uniform(count) < short_seq_prob
    short = 2 + draws.below(np.full(count, max_tokens - 1))
    return np.where(is_short, short, max_tokens)


def _chunks(text, document, draws, max_tokens, short_seq_prob):
    """Returns the chunks of passes over documents as sentence indices.

    A is [first, middle), and the rest of the chunk is [middle, last).
    """
    target = _targets(len(document), draws, max_tokens, short_seq_prob)
    first, end = text.document_starts[document], text.document_starts[document + 1]
    steps = []
    while len(first):
        wanted = text.sentence_starts[first] + target
        # The chunk ends with the first sentence that reaches the target.
        last = np.minimum(np.searchsorted(text.sentence_starts, wanted, "left"), end)
        num_sentences = last - first
        middle = first + 1 + draws.below(np.maximum(num_sentences - 1, 1))
        is_random_next = draws.uniform(len(first)) < _RANDOM_NEXT_PROB
        is_random_next |= num_sentences == 1
        steps.append((document, target, first, middle, last, is_random_next))
        # If B is random, the sentences after A are unused: the next chunk has them.
        after = np.where(is_random_next, middle, last)
        goes_on = after < end
        first, end = after[goes_on], end[goes_on]
        document, target = document[goes_on], target[goes_on]
    names = ("document", "target", "first", "middle", "last", "is_random_next")
    columns = zip(*steps, strict=True)
    return {
        name: np.concatenate(column)
        for name, column in zip(names, columns, strict=True)
    }


def _random_segments(text, draws, *, document, num_wanted):
    """Returns the start and length of a segment of another document for each pair."""
    other = _other_documents(text, draws, document)
    begin, end = text.document_starts[other], text.document_starts[other + 1]
    first = begin + draws.below(end - begin)
    start = text.sentence_starts[first]
    last = np.searchsorted(text.sentence_starts, start + num_wanted, "left")
    last = np.clip(last, first + 1, end)
    return start, text.sentence_starts[last] - start


def _other_documents(text, draws, document):
    """Returns another document for each, drawn uniformly."""
    drawn = draws.below(np.full(len(document), text.num_documents - 1))
    return drawn + (drawn >= document)


def _truncated(pairs, draws, max_tokens):
    """Returns the pairs cut to at most `max_tokens` pieces.

    The release removes one piece at a time from the longer segment, B if both are
    equally long, at its start or its end by a fair coin. The lengths therefore follow
    from the lengths before, and the number of pieces removed at the start is the number
    of heads among that many coins.
    """
    kept_a, kept_b = _kept(pairs.length_a, pairs.length_b, max_tokens)
    return PairTable(
        start_a=pairs.start_a + draws.heads(pairs.length_a - kept_a),
        length_a=kept_a,
        start_b=pairs.start_b + draws.heads(pairs.length_b - kept_b),
        length_b=kept_b,
        is_random_next=pairs.is_random_next,
    )


def _kept(length_a, length_b, max_tokens):
    """Returns the lengths of both segments after truncation."""
    half = max_tokens // 2
    too_long = length_a + length_b > max_tokens
    both = too_long & (np.minimum(length_a, length_b) > half)
    only_a = too_long & ~both & (length_a > length_b)
    only_b = too_long & ~both & ~only_a
    conditions = [both, only_a]
    kept_a = np.select(conditions, [max_tokens - half, max_tokens - length_b], length_a)
    conditions = [both, only_b]
    kept_b = np.select(conditions, [half, max_tokens - length_a], length_b)
    return kept_a, kept_b
