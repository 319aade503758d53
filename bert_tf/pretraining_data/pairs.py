"""Sentence pairs, drawn for all documents of a shard at once.

The distributions are those of `release_sampling.PairSampler`, which gives the reasons
for each draw. There is one difference: B never comes from A's document, whereas the
release gives up after ten tries.

A pass goes through one document and cuts it into chunks: consecutive sentences that
together reach the target length. Each chunk gives a pair. All passes over all documents
advance together, chunk by chunk, so that one call serves thousands of pairs.

The vectorized sampler runs this with NumPy (`numpy_arrays`), the tf_data sampler with
TensorFlow (`graph_arrays`).

Shape letters: P pieces, N sentences, D documents, I pairs.
"""

from typing import Any
from typing import NamedTuple

_RANDOM_NEXT_PROB = 0.5


class Text(NamedTuple):
    """Documents of sentences of word pieces. No document or sentence is empty."""

    ids: Any  # int32 [P], the pieces of all sentences.
    sentence_starts: Any  # int64 [N + 1], first piece of each, then P.
    document_starts: Any  # int64 [D + 1], first sentence of each, then N.
    # bool [P], whether a piece begins a word. None: all without `##` do.
    starts_word: Any = None


class Pairs(NamedTuple):
    """Pairs as ranges of pieces in a `Text`; all arrays have the shape [I]."""

    start_a: Any  # int64, index of A's first piece.
    length_a: Any  # int64
    start_b: Any  # int64, index of B's first piece.
    length_b: Any  # int64; 0 if there is no B.
    is_random_next: Any  # bool, whether B comes from another document.


class Sampler:
    """Draws pairs, or sequences without a second segment.

    `arrays` is the module `numpy_arrays` or `graph_arrays`; the options are those of
    create_pretraining_data or run_pretraining.
    """

    def __init__(self, arrays: Any, options: Any):
        self._arrays = arrays
        self._next_sentence = options.next_sentence
        self._short_seq_prob = options.short_seq_prob
        num_special = 3 if options.next_sentence else 2  # [CLS], and one or two [SEP].
        self._max_tokens = options.max_seq_length - num_special

    def sample(self, text: Text, draws: Any, dupe_factor: int) -> Pairs:
        """Returns the pairs of some passes over the text, in random order.

        Args:
            text: the text; at least two documents if pairs are drawn.
            draws: source of all draws.
            dupe_factor: number of passes over each document.
        """
        sample = self._pairs if self._next_sentence else self._sequences
        return shuffled(self._arrays, sample(text, draws, dupe_factor), draws)

    def _pairs(self, text, draws, dupe_factor):
        arrays, starts = self._arrays, text.sentence_starts
        take = arrays.take
        document, target, first, middle, last, is_random_next = self._in_passes(
            self._chunks, text, draws, dupe_factor
        )
        start_a, start_b = take(starts, first), take(starts, middle)
        length_a, length_b = start_b - start_a, take(starts, last) - start_b

        def random_segments(rows):
            num_wanted = target[rows] - length_a[rows]
            return self._random_segments(text, draws, document[rows], num_wanted)

        start_b, length_b = arrays.replaced(
            is_random_next, (start_b, length_b), random_segments
        )
        pairs = Pairs(start_a, length_a, start_b, length_b, is_random_next)
        return self._truncated(pairs, draws)

    def _sequences(self, text, draws, dupe_factor):
        """Returns runs of whole consecutive sentences of one document, as A without B.

        A run takes sentences as long as they fit. A sentence that is too long is split.
        """
        arrays = self._arrays
        text = self._with_split_sentences(text)
        start_a, length_a = self._in_passes(self._runs, text, draws, dupe_factor)
        nothing = arrays.zeros_like(start_a)
        return Pairs(start_a, length_a, nothing, nothing, nothing > 0)

    def _in_passes(self, cut, text, draws, dupe_factor):
        """Returns the columns that `cut` makes of passes over all documents."""
        arrays = self._arrays
        groups = [
            cut(text, passes, draws)
            for passes in arrays.passes(text.document_starts, dupe_factor)
        ]
        return map(arrays.concatenate, zip(*groups, strict=True))

    def _runs(self, text, passes, draws):
        """Returns start and length of the runs of passes over documents."""
        arrays, starts = self._arrays, text.sentence_starts

        def step(index, first, end, target):
            begin = arrays.take(starts, first)
            fits = arrays.searchsorted(starts, begin + target, "right") - 1
            after = arrays.clip(fits, first + 1, end)
            length = arrays.take(starts, after) - begin
            goes_on = after < end
            return (begin, length), (after[goes_on], end[goes_on], target[goes_on])

        target = self._targets(passes, draws)
        return arrays.loop(step, (*self._range_of(text, passes), target), (int, int))

    def _targets(self, passes, draws):
        """Returns the target length of each pass in pieces: int64."""
        arrays = self._arrays
        is_short = draws.uniform(arrays.size(passes)) < self._short_seq_prob
        limits = arrays.full_like(passes, self._max_tokens - 1)
        return arrays.where(is_short, 2 + draws.below(limits), limits + 1)

    def _chunks(self, text, passes, draws):
        """Returns the chunks of passes over documents.

        Returns:
            Document, target length, and three indices of sentences for each chunk: A is
            [first, middle), and the rest of the chunk is [middle, last). Then whether B
            is random.
        """
        arrays, starts = self._arrays, text.sentence_starts

        def step(index, document, target, first, end):
            own_draws = draws.part(index)
            wanted = arrays.take(starts, first) + target
            # The chunk ends with the first sentence that reaches the target.
            last = arrays.minimum(arrays.searchsorted(starts, wanted, "left"), end)
            num_sentences = last - first
            middle = first + 1 + own_draws.below(arrays.maximum(num_sentences - 1, 1))
            is_random_next = own_draws.uniform(arrays.size(first)) < _RANDOM_NEXT_PROB
            is_random_next |= num_sentences == 1
            # If B is random, the sentences after A are unused: the next chunk has them.
            after = arrays.where(is_random_next, middle, last)
            goes_on = after < end
            state = (document[goes_on], target[goes_on], after[goes_on], end[goes_on])
            return (document, target, first, middle, last, is_random_next), state

        target = self._targets(passes, draws)
        state = (passes, target, *self._range_of(text, passes))
        return arrays.loop(step, state, (int, int, int, int, int, bool))

    def _range_of(self, text, document):
        """Returns the first sentence of documents, and the one after the last."""
        take, starts = self._arrays.take, text.document_starts
        return take(starts, document), take(starts, document + 1)

    def _random_segments(self, text, draws, document, num_wanted):
        """Returns start and length of a segment of another document for each pair."""
        arrays, starts = self._arrays, text.sentence_starts
        other = _other_documents(arrays, text, draws, document)
        begin, end = self._range_of(text, other)
        first = begin + draws.below(end - begin)
        start = arrays.take(starts, first)
        last = arrays.searchsorted(starts, start + num_wanted, "left")
        last = arrays.clip(last, first + 1, end)
        return start, arrays.take(starts, last) - start

    def _truncated(self, pairs, draws):
        """Returns the pairs cut to at most `max_tokens` pieces.

        The release removes one piece at a time from the longer segment, B if both are
        equally long, at its start or its end by a fair coin. The lengths therefore
        follow from the lengths before, and the number of pieces removed at the start is
        the number of heads among that many coins.
        """
        arrays, most = self._arrays, self._max_tokens
        where = arrays.where
        half = arrays.full_like(pairs.length_a, most // 2)
        length_a, length_b = pairs.length_a, pairs.length_b
        too_long = length_a + length_b > most
        both = too_long & (arrays.minimum(length_a, length_b) > half)
        only_a = too_long & ~both & (length_a > length_b)
        only_b = too_long & ~both & ~only_a
        kept_a = where(only_a, most - length_b, length_a)
        kept_a = where(both, most - half, kept_a)
        kept_b = where(only_b, most - length_a, length_b)
        kept_b = where(both, half, kept_b)
        return pairs._replace(
            start_a=pairs.start_a + draws.heads(length_a - kept_a),
            length_a=kept_a,
            start_b=pairs.start_b + draws.heads(length_b - kept_b),
            length_b=kept_b,
        )

    def _with_split_sentences(self, text):
        """Returns the same text with longer sentences split into parts."""
        arrays, starts = self._arrays, text.sentence_starts
        parts = -(-(starts[1:] - starts[:-1]) // self._max_tokens)
        bounds = arrays.concatenate([[0], arrays.cumsum(parts)])
        number = arrays.arange(bounds[-1]) - arrays.repeat(bounds[:-1], parts)
        split = arrays.repeat(starts[:-1], parts) + number * self._max_tokens
        return text._replace(
            sentence_starts=arrays.concatenate([split, starts[-1:]]),
            document_starts=arrays.take(bounds, text.document_starts),
        )


def shuffled(arrays: Any, pairs: Pairs, draws: Any) -> Pairs:
    """Returns pairs in random order."""
    order = draws.permutation(arrays.size(pairs.start_a))
    return Pairs(*(arrays.take(column, order) for column in pairs))


def _other_documents(arrays, text, draws, document):
    """Returns another document for each, drawn uniformly."""
    num_others = arrays.size(text.document_starts) - 2
    drawn = draws.below(arrays.full_like(document, num_others))
    return arrays.where(drawn >= document, drawn + 1, drawn)
