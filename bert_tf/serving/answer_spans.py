"""Windows over contexts, the best answer in them, and its characters, in a graph.

The TensorFlow version of `question_answering.features`, `predictions` and `alignment`,
which explain the steps. A SavedModel cannot call them, and if `predict` used this
graph, it would wait for TensorFlow to trace it.

Shape letters: B questions, P pieces of a context, W windows, S sequence, K the best
starts (or ends) of a window; in `answers` also N words, T tokens, C characters.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.serving import word_splitting
from bert_tf.tokenization import characters
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

SPACE = ord(" ")
NO_CHARACTER = -1
_WITHOUT_SPACES = f"(?s).*[{characters.SCRIPTS_WITHOUT_SPACES}].*"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BestSpans:
    """The best span of each question."""

    is_found: tf.Tensor  # bool [B]; where False, all other fields are 0.
    first_piece: tf.Tensor  # int64 [B], counted in the context.
    last_piece: tf.Tensor  # int64 [B]
    start_logit: tf.Tensor  # float64 [B]
    end_logit: tf.Tensor  # float64 [B]


def best_spans(
    windows: graph_packing.Windows,
    question_ids: tf.RaggedTensor,
    context_ids: tf.RaggedTensor,
    logits: Sequence[tf.Tensor],
    rules: Any,
) -> BestSpans:
    """Returns the best span of each question, "no answer" excluded.

    Windows are over the contexts; both ids are int32 [B, pieces]. `logits` are the
    start and the end scores, float32 [W, S] each; those of padding must be so low that
    it cannot be chosen. `rules` are `predictions.Rules`, or the record of a run.
    """
    count = tf.minimum(rules.n_best_size, tf.shape(logits[0])[1])
    start_logits, starts = tf.math.top_k(logits[0], k=count)  # [W, K]
    end_logits, ends = tf.math.top_k(logits[1], k=count)
    # Where the context begins in its row, after [CLS] and [SEP].
    offset = tf.gather(question_ids.row_lengths(), windows.text) + 2
    first_pieces, may_start = _pieces(windows, offset, starts)
    last_pieces, may_end = _pieces(windows, offset, ends)
    may_start &= _is_max_context(windows, context_ids, first_pieces, may_start)
    lengths = last_pieces[:, tf.newaxis] - first_pieces[:, :, tf.newaxis] + 1
    allowed = may_start[:, :, tf.newaxis] & may_end[:, tf.newaxis]  # [W, K, K]
    allowed &= (lengths > 0) & (lengths <= rules.max_answer_length)
    start_logits = tf.cast(start_logits, tf.float64)
    end_logits = tf.cast(end_logits, tf.float64)
    scores = start_logits[:, :, tf.newaxis] + end_logits[:, tf.newaxis]
    nothing = tf.constant(float("-inf"), tf.float64)
    scores = tf.reshape(tf.where(allowed, scores, nothing), [-1, count * count])
    window = _first_best_window(
        windows, tf.reduce_max(scores, axis=1), context_ids.nrows()
    )
    pair = tf.argmax(tf.gather(scores, window), axis=1, output_type=tf.int32)  # [B]
    is_found = tf.gather(scores, window)
    is_found = tf.gather(is_found, pair, batch_dims=1) > nothing

    def chosen(values, index):
        value = tf.gather(tf.gather(values, window), index, batch_dims=1)
        return tf.where(is_found, value, tf.zeros_like(value))

    return BestSpans(
        is_found=is_found,
        first_piece=chosen(first_pieces, pair // count),
        last_piece=chosen(last_pieces, pair % count),
        start_logit=chosen(start_logits, pair // count),
        end_logit=chosen(end_logits, pair % count),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of each answer, and the other pieces of its word."""

    of_word: tf.RaggedTensor  # string [B, P]
    index: tf.Tensor  # int64 [B], of the piece.


def answers(
    contexts: word_splitting.TextWords,
    first_word: tf.Tensor,
    num_words: tf.Tensor,
    basic_tokens: Callable[[tf.Tensor], tf.RaggedTensor],
    *,
    texts: tf.Tensor,
    first_piece: Piece,
    last_piece: Piece,
) -> dict[str, tf.Tensor]:
    """Returns the answers contained in some words of the contexts.

    Args:
        contexts: the contexts' words, B rows.
        first_word: int64 [B], the number of the answer's first word.
        num_words: int64 [B]; 0 for no answer, which has the text "" and position 0.
        basic_tokens: splits words as the tokenizer does before word pieces: string [N]
            to code points, int32 [N, T, C].
        texts: string [B], the pieces of each answer as text.
        first_piece, last_piece: the pieces at its ends.

    Returns:
        `answer`, string [B], with single spaces; `start` and `end`, int64 [B].
    """
    first = contexts.words.row_starts() + first_word  # Among all words.
    numbers = tf.ragged.range(first, first + num_words)  # [B, words]
    letters = _letters(contexts, numbers)
    shown = _joined(basic_tokens(tf.gather(contexts.words.values, numbers.values)))
    shown = _by_row(shown, numbers.row_splits)  # [B, C]
    is_space = shown.with_values(tf.cast(shown.values == SPACE, tf.int64))
    shown = shown.to_tensor(NO_CHARACTER)
    start, length, is_found = _find(shown, texts)
    num_letters = tf.reduce_sum(1 - is_space, axis=1)
    is_found &= num_letters == letters.row_lengths()
    # Indices among the letters, without the spaces.
    spaces = tf.cumsum(tf.pad(is_space.to_tensor(), [[0, 0], [1, 1]]), axis=1)
    begin = tf.where(is_found, start - _at(spaces, start), 0)
    last = start + length - 1
    last = tf.where(is_found, last - _at(spaces, last), letters.row_lengths() - 1)
    starts = _letter(letters, begin)
    ends = tf.where(num_words > 0, _letter(letters, last) + 1, 0)
    first_letter = _letter(letters, tf.zeros_like(begin))
    end = _letter(letters, letters.row_lengths() - 1) + 1
    whole = _texts(contexts.texts, first_letter, end)
    has_no_spaces = tf.strings.regex_full_match(whole, _WITHOUT_SPACES)
    is_candidate = has_no_spaces & (num_words > 0)
    rows = tf.where(is_candidate)[:, 0]
    if_first = _covered(contexts, first, first_piece, rows, basic_tokens)
    if_last = _covered(contexts, first + num_words - 1, last_piece, rows, basic_tokens)
    is_known = if_first[2] & if_last[2]
    rows = tf.boolean_mask(rows, is_known)
    begin = tf.boolean_mask(if_first[0], is_known)
    end = tf.boolean_mask(if_last[1], is_known)
    # If the text occurs several times, `_find` returns the first place.
    covered = _texts(tf.gather(contexts.texts, rows), begin, end)
    is_same = covered == tf.gather(_texts(contexts.texts, starts, ends), rows)
    is_right = is_same | ~tf.gather(is_found, rows)
    rows = tf.boolean_mask(rows, is_right)[:, tf.newaxis]
    starts, ends = (
        tf.tensor_scatter_nd_update(old, rows, tf.boolean_mask(new, is_right))
        for old, new in ((starts, begin), (ends, end))
    )
    answer = _texts(contexts.texts, starts, ends)
    return {"answer": answer, "start": starts, "end": ends}


def _covered(contexts, numbers, piece, rows, basic_tokens):
    """Returns the start and the end of pieces in the contexts of some rows.

    `numbers`, int64 [B], are the words of the pieces, among all words; `rows` is int64
    [R]. The result is int64 [R] twice, and whether they are known, bool [R].
    """
    numbers, index = tf.gather(numbers, rows), tf.gather(piece.index, rows)
    words = tf.gather(contexts.words.values, numbers)
    split = tf.strings.unicode_split(words, "UTF-8")  # [R, C]
    letters = tf.reduce_sum(_token_lengths(basic_tokens(split.values)), axis=1)
    letters = split.with_values(letters).to_tensor()
    tokens = _token_lengths(basic_tokens(words)).to_tensor()  # [R, T]
    pieces = tf.gather(piece.of_word, rows).to_tensor("")  # [R, P]
    is_start = ~tf.strings.regex_full_match(pieces, f"{wordpiece.CONTINUATION}.+")
    token_of = tf.cumsum(tf.cast(is_start, tf.int64), axis=1) - 1
    shown = tf.strings.regex_replace(pieces, f"^{wordpiece.CONTINUATION}(.)", r"\1")
    sizes = tf.cast(tf.strings.length(shown, unit="UTF8_CHAR"), tf.int64)
    token = _at(token_of, index)
    is_unknown = _at(pieces, index) == vocabulary_module.UNK
    position = tf.range(tf.shape(pieces, tf.int64)[1])[tf.newaxis]
    is_before = (token_of == token[:, tf.newaxis]) & (position < index[:, tf.newaxis])
    begin = _at(tf.cumsum(tokens, axis=1, exclusive=True), token)
    begin += tf.reduce_sum(tf.where(is_before, sizes, 0), axis=1)
    end = begin + tf.where(is_unknown, _at(tokens, token), _at(sizes, index))
    through = tf.cumsum(letters, axis=1)  # [R, C]
    is_mark = tf.strings.regex_full_match(split.to_tensor(""), r"\p{Mn}")
    # A mark without letters of its own belongs to the character before it.
    owner = tf.cumsum(tf.cast(~(is_mark & (letters == 0)), tf.int64), axis=1)
    last = _at(owner, _num_true(through <= end[:, tf.newaxis] - 1))
    word_start = tf.gather(contexts.starts.values, numbers)
    return (
        word_start + _num_true(through <= begin[:, tf.newaxis]),
        word_start + _num_true(owner <= last[:, tf.newaxis]),
        tf.reduce_sum(letters, axis=1) == tf.reduce_sum(tokens, axis=1),
    )


def _token_lengths(tokens):
    """Returns the number of letters of each token: int64 [N, T]."""
    return tokens.with_values(tokens.values.row_lengths())


def _num_true(conditions):
    return tf.reduce_sum(tf.cast(conditions, tf.int64), axis=1)


def _pieces(windows, offset, indices):
    """Returns the context pieces [W, K] at indices of rows, and whether they exist."""
    inside = tf.cast(indices, tf.int64) - offset[:, tf.newaxis]
    exists = (inside >= 0) & (inside < windows.length[:, tf.newaxis])
    return inside + windows.start[:, tf.newaxis], exists


def _is_max_context(windows, context_ids, pieces, exists):
    """Returns whether no other window shows more context of a piece, [W, K]."""
    row_starts = context_ids.row_starts()
    begin = tf.gather(row_starts, windows.text)[:, tf.newaxis]
    # One more entry, so that index 0 exists even if there are no pieces.
    best = tf.pad(graph_packing.best_windows(windows, row_starts), [[0, 1]])
    best = tf.gather(best, tf.where(exists, pieces + begin, 0))
    return best == tf.range(tf.size(windows.text, tf.int64))[:, tf.newaxis]


def _first_best_window(windows, scores, num_questions):
    """Returns the first window of each question with the best score, [B]."""
    best = tf.math.segment_max(scores, windows.text)
    is_best = scores == tf.gather(best, windows.text)
    numbers = tf.range(tf.size(scores, tf.int64))
    return tf.math.unsorted_segment_min(
        tf.boolean_mask(numbers, is_best),
        tf.boolean_mask(windows.text, is_best),
        num_questions,
    )


def _letters(contexts, numbers):
    """Returns the positions of all characters of some words: int64 [B, C]."""
    positions = tf.ragged.range(
        tf.gather(contexts.starts.values, numbers.values),
        tf.gather(contexts.ends.values, numbers.values),
    )
    return _by_row(positions, numbers.row_splits)


def _by_row(values, splits):
    """Returns [B, C] from [N, C] by concatenating the rows that belong together."""
    return tf.RaggedTensor.from_row_splits(
        values.values, tf.gather(values.row_splits, splits), validate=False
    )


def _joined(tokens):
    """Returns [N, C] from [N, T, C], with a space after each token."""
    each = tokens.values  # [tokens, C]
    spaced = tf.concat([each, tf.fill([each.nrows(), 1], SPACE)], axis=1)
    return _by_row(spaced, tokens.row_splits)


def _find(shown, patterns):
    """Returns where each pattern first occurs in its text.

    One character of the pattern is compared with all positions of the text per step, so
    that even a context of 100,000 characters without a space needs little memory.

    `shown`, int32 [B, C], has the texts' code points, padded with `NO_CHARACTER`. The
    result is the position and the pattern's length, int64 [B], and whether the pattern
    occurs, bool [B]; an empty pattern does not.
    """
    patterns = tf.strings.unicode_decode(patterns, "UTF-8")
    lengths = patterns.row_lengths()
    patterns = patterns.to_tensor(NO_CHARACTER)  # [B, M]
    num_positions = tf.shape(shown)[1] + 1
    padding = [[0, 0], [0, tf.shape(patterns)[1] + 1]]
    shown = tf.pad(shown, padding, constant_values=NO_CHARACTER)

    def compare_next(number, matches):
        expected = patterns[:, number, tf.newaxis]
        agrees = shown[:, number : number + num_positions] == expected
        return number + 1, matches & (agrees | (expected == NO_CHARACTER))

    _, matches = tf.while_loop(
        lambda number, matches: number < tf.shape(patterns)[1],
        compare_next,
        (0, tf.ones([tf.shape(shown)[0], num_positions], bool)),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, None])),
    )
    is_found = tf.reduce_any(matches, axis=1) & (lengths > 0)
    return tf.argmax(tf.cast(matches, tf.int8), axis=1), lengths, is_found


def _at(values, indices):
    """Returns values[b, indices[b]] for each row b."""
    last = tf.maximum(tf.shape(values, tf.int64)[1] - 1, 0)
    return tf.gather(values, tf.clip_by_value(indices, 0, last), batch_dims=1)


def _letter(letters, numbers):
    """Returns the position of one letter of each row; 0 in a row without letters."""
    has_letters = letters.row_lengths() > 0
    index = tf.where(has_letters, letters.row_starts() + numbers, 0)
    index = tf.minimum(index, tf.size(letters.values, tf.int64))
    positions = tf.concat([letters.values, [0]], axis=0)
    return tf.where(has_letters, tf.gather(positions, index), 0)


def _texts(texts, starts, ends):
    cut = tf.strings.substr(texts, starts, ends - starts, unit="UTF8_CHAR")
    return tf.strings.regex_replace(cut, r"[ \t\r\n\x{202F}]+", " ")
