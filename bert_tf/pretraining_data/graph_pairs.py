"""Sentence pairs as TensorFlow ops, drawn for all documents of a shard at once.

The algorithm and the distributions are those of `vectorized_pairs`; `release_pairs`
gives the reasons for each draw.

Shape letters: P pieces, N sentences, D documents, I pairs.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_tf.pretraining_data import graph_draws

_RANDOM_NEXT_PROB = 0.5
# What str.strip() removes.
_WHITE_SPACE = (
    r"[\t\n\v\f\r\x1c-\x1f \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}"
    r"\x{202f}\x{205f}\x{3000}]*"
)


class Text(NamedTuple):
    """Documents of sentences of word pieces. No document or sentence is empty."""

    ids: tf.Tensor  # int32 [P], the pieces of all sentences.
    sentence_starts: tf.Tensor  # int64 [N + 1], first piece of each, then P.
    document_starts: tf.Tensor  # int64 [D + 1], first sentence of each, then N.


class Pairs(NamedTuple):
    """Pairs as ranges of pieces in a `Text`; all tensors have the shape [I]."""

    start_a: tf.Tensor  # int64, index of A's first piece.
    length_a: tf.Tensor  # int64
    start_b: tf.Tensor  # int64, index of B's first piece.
    length_b: tf.Tensor  # int64; 0 if there is no B.
    is_random_next: tf.Tensor  # bool, whether B comes from another document.


class _Chunks(NamedTuple):
    """Consecutive sentences of a document, as indices of sentences; all [I]."""

    document: tf.Tensor
    target: tf.Tensor  # Target number of pieces of A and B together.
    first: tf.Tensor
    middle: tf.Tensor  # A is [first, middle), the rest of the chunk [middle, last).
    last: tf.Tensor
    is_random_next: tf.Tensor


def text_of_lines(lines: tf.Tensor, ids: tf.RaggedTensor) -> Text:
    """Returns the sentences and documents of tokenized lines.

    Args:
        lines: tf.string [lines]; blank ones separate documents.
        ids: ragged int32 [lines, pieces].
    """
    is_blank = tf.strings.regex_full_match(lines, _WHITE_SPACE)
    lengths = ids.row_lengths()
    has_pieces = lengths > 0
    document = tf.cumsum(tf.cast(is_blank, tf.int64))[has_pieces]
    lengths = lengths[has_pieces]
    # Sentences that begin a document. Subtracting 1 makes the first sentence one.
    previous = tf.concat([document[:1] - 1, document[:-1]], axis=0)
    starts = tf.where(document != previous)[:, 0]
    return Text(
        ids=ids.flat_values,
        sentence_starts=_with_zero(tf.cumsum(lengths)),
        document_starts=tf.concat([starts, [tf.size(lengths, tf.int64)]], axis=0),
    )


def sample_pairs(
    text: Text,
    draws: graph_draws.GraphDraws,
    *,
    max_tokens: int,
    short_seq_prob: float,
    dupe_factor: int,
) -> Pairs:
    """Returns the pairs of `dupe_factor` passes over the text, not in random order.

    Args:
        text: a text of at least two documents.
        draws: source of all draws.
        max_tokens: maximum number of pieces of A and B together.
        short_seq_prob: probability that a pass over a document makes shorter pairs.
        dupe_factor: number of passes over each document.
    """
    tf.debugging.assert_greater(
        tf.size(text.document_starts), 2, "Pairs need documents with word pieces."
    )
    chunks = _chunks(text, draws, max_tokens, short_seq_prob, dupe_factor)
    starts = text.sentence_starts
    start_a = tf.gather(starts, chunks.first)
    start_b = tf.gather(starts, chunks.middle)
    length_a = start_b - start_a
    length_b = tf.gather(starts, chunks.last) - start_b
    random_start, random_length = _random_segments(
        text, draws, chunks.document, chunks.target - length_a
    )
    return _truncated(
        Pairs(
            start_a=start_a,
            length_a=length_a,
            start_b=tf.where(chunks.is_random_next, random_start, start_b),
            length_b=tf.where(chunks.is_random_next, random_length, length_b),
            is_random_next=chunks.is_random_next,
        ),
        draws,
        max_tokens,
    )


def sample_sequences(
    text: Text,
    draws: graph_draws.GraphDraws,
    *,
    max_tokens: int,
    short_seq_prob: float,
    dupe_factor: int,
) -> Pairs:
    """Returns runs of whole consecutive sentences of one document, as A without B.

    A run takes sentences as long as they fit. A sentence that is too long is split.
    The arguments are those of `sample_pairs`.
    """
    text = _with_split_sentences(text, max_tokens)
    passes = _passes(text, dupe_factor)
    target = _targets(tf.size(passes), draws, max_tokens, short_seq_prob)

    def step(first, end, target):
        begin = tf.gather(text.sentence_starts, first)
        fits = _search(text.sentence_starts, begin + target, "right") - 1
        after = tf.clip_by_value(fits, first + 1, end)
        length = tf.gather(text.sentence_starts, after) - begin
        goes_on = after < end
        return (begin, length), (after[goes_on], end[goes_on], target[goes_on])

    first, end = _range_of(text.document_starts, passes)
    start_a, length_a = _repeat(
        lambda index, *state: step(*state), (first, end, target), (tf.int64, tf.int64)
    )
    nothing = tf.zeros_like(start_a)
    return Pairs(
        start_a=start_a,
        length_a=length_a,
        start_b=nothing,
        length_b=nothing,
        is_random_next=tf.cast(nothing, tf.bool),
    )


def _chunks(text, draws, max_tokens, short_seq_prob, dupe_factor):
    passes = _passes(text, dupe_factor)
    target = _targets(tf.size(passes), draws, max_tokens, short_seq_prob)
    first, end = _range_of(text.document_starts, passes)

    def step(index, document, target, first, end):
        own_draws = draws.part(index)
        wanted = tf.gather(text.sentence_starts, first) + target
        # The chunk ends with the first sentence that reaches the target.
        last = tf.minimum(_search(text.sentence_starts, wanted, "left"), end)
        num_sentences = last - first
        middle = first + 1 + own_draws.below(tf.maximum(num_sentences - 1, 1))
        is_random_next = own_draws.uniform(tf.shape(first)) < _RANDOM_NEXT_PROB
        is_random_next |= num_sentences == 1
        # If B is random, the sentences after A are unused; the next chunk takes them.
        after = tf.where(is_random_next, middle, last)
        goes_on = after < end
        state = (document[goes_on], target[goes_on], after[goes_on], end[goes_on])
        return (document, target, first, middle, last, is_random_next), state

    dtypes = (*[tf.int64] * 5, tf.bool)
    return _Chunks(*_repeat(step, (passes, target, first, end), dtypes))


def _repeat(step, state, dtypes):
    """Calls step(index, *state) → (outputs, state) until the state is empty.

    Returns:
        Each of the outputs, concatenated over the calls.
    """
    arrays = tuple(
        tf.TensorArray(
            dtype, size=0, dynamic_size=True, infer_shape=False, element_shape=[None]
        )
        for dtype in dtypes
    )

    def body(index, arrays, state):
        outputs, state = step(index, *state)
        written = tuple(
            array.write(index, output)
            for array, output in zip(arrays, outputs, strict=True)
        )
        return index + 1, written, state

    any_length = tf.nest.map_structure(lambda _: tf.TensorShape([None]), state)
    _, arrays, _ = tf.while_loop(
        lambda index, arrays, state: tf.size(state[0]) > 0,
        body,
        (tf.constant(0), arrays, state),
        shape_invariants=(
            tf.TensorShape([]),
            tuple(tf.TensorShape(None) for _ in arrays),
            any_length,
        ),
        parallel_iterations=1,
    )
    return tuple(array.concat() for array in arrays)


def _passes(text, dupe_factor):
    """Returns the indices of all documents, `dupe_factor` times: int64."""
    documents = tf.range(tf.size(text.document_starts, tf.int64) - 1)
    return tf.tile(documents, [dupe_factor])


def _targets(count, draws, max_tokens, short_seq_prob):
    """Returns the target length of each pass in pieces: int64 [count]."""
    is_short = draws.uniform([count]) < short_seq_prob
    short = 2 + draws.below(tf.fill([count], max_tokens - 1))
    return tf.where(is_short, short, tf.constant(max_tokens, tf.int64))


def _random_segments(text, draws, document, num_wanted):
    """Returns the start and length of a segment of another document for each pair."""
    num_documents = tf.size(text.document_starts, tf.int64) - 1
    drawn = draws.below(tf.fill(tf.shape(document), num_documents - 1))
    other = drawn + tf.cast(drawn >= document, tf.int64)
    begin, end = _range_of(text.document_starts, other)
    first = begin + draws.below(end - begin)
    start = tf.gather(text.sentence_starts, first)
    last = _search(text.sentence_starts, start + num_wanted, "left")
    last = tf.clip_by_value(last, first + 1, end)
    return start, tf.gather(text.sentence_starts, last) - start


def _truncated(pairs, draws, max_tokens):
    """Returns the pairs cut to at most `max_tokens`, as `vectorized_pairs` does."""
    half = max_tokens // 2
    length_a, length_b = pairs.length_a, pairs.length_b
    too_long = length_a + length_b > max_tokens
    both = too_long & (tf.minimum(length_a, length_b) > half)
    only_a = too_long & ~both & (length_a > length_b)
    only_b = too_long & ~both & ~only_a
    kept_a = tf.where(only_a, max_tokens - length_b, length_a)
    kept_a = tf.where(both, tf.constant(max_tokens - half, tf.int64), kept_a)
    kept_b = tf.where(only_b, max_tokens - length_a, length_b)
    kept_b = tf.where(both, tf.constant(half, tf.int64), kept_b)
    return pairs._replace(
        start_a=pairs.start_a + draws.heads(length_a - kept_a),
        length_a=kept_a,
        start_b=pairs.start_b + draws.heads(length_b - kept_b),
        length_b=kept_b,
    )


def _with_split_sentences(text, max_pieces):
    """Returns the same text with longer sentences split into parts."""
    starts = text.sentence_starts
    parts = -(-(starts[1:] - starts[:-1]) // max_pieces)
    first = tf.cumsum(parts, exclusive=True)
    place = tf.range(tf.reduce_sum(parts)) - tf.repeat(first, parts)
    split = tf.repeat(starts[:-1], parts) + place * max_pieces
    return Text(
        ids=text.ids,
        sentence_starts=tf.concat([split, starts[-1:]], axis=0),
        document_starts=tf.gather(_with_zero(tf.cumsum(parts)), text.document_starts),
    )


def _range_of(starts, index):
    return tf.gather(starts, index), tf.gather(starts, index + 1)


def _search(sorted_values, values, side):
    return tf.searchsorted(sorted_values, values, side=side, out_type=tf.int64)


def _with_zero(values):
    return tf.concat([tf.zeros([1], tf.int64), values], axis=0)
