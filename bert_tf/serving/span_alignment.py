"""Maps an answer's pieces back to characters of its context, in a graph.

The TensorFlow version of `question_answering.alignment`, which explains the steps.

Shape letters: B questions, W words, T tokens, C characters.
"""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from bert_tf.serving import word_splitting

SPACE = ord(" ")
NO_CHARACTER = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers and their positions in the contexts."""

    texts: tf.Tensor  # string [B], with single spaces.
    starts: tf.Tensor  # int64 [B]
    ends: tf.Tensor  # int64 [B]


def answers(
    contexts: word_splitting.TextWords,
    first_word: tf.Tensor,
    num_words: tf.Tensor,
    piece_texts: tf.Tensor,
    basic_tokens: Callable[[tf.Tensor], tf.RaggedTensor],
) -> Answers:
    """Returns the answers contained in some words of the contexts.

    Args:
        contexts: the contexts' words, B rows.
        first_word: int64 [B], the number of the answer's first word.
        num_words: int64 [B]; 0 for no answer, which has the text "" and position 0.
        piece_texts: string [B], the answer's pieces as text.
        basic_tokens: splits words as the tokenizer does before word pieces: string [N]
            to code points, int32 [N, T, C].
    """
    first = contexts.words.row_starts() + first_word  # Among all words.
    numbers = tf.ragged.range(first, first + num_words)  # [B, W]
    letters = _letters(contexts, numbers)
    shown = _joined(basic_tokens(tf.gather(contexts.words.values, numbers.values)))
    shown = _by_row(shown, numbers.row_splits)  # [B, C]
    is_space = shown.with_values(tf.cast(shown.values == SPACE, tf.int64))
    shown = shown.to_tensor(NO_CHARACTER)
    start, length, is_found = _find(shown, piece_texts)
    num_letters = tf.reduce_sum(1 - is_space, axis=1)
    is_found &= num_letters == letters.row_lengths()
    # Indices among the letters, without the spaces.
    spaces = tf.cumsum(tf.pad(is_space.to_tensor(), [[0, 0], [1, 1]]), axis=1)
    begin = tf.where(is_found, start - _at_indices(spaces, start), 0)
    last = start + length - 1
    last = tf.where(
        is_found, last - _at_indices(spaces, last), letters.row_lengths() - 1
    )
    starts = _letter(letters, begin)
    ends = tf.where(num_words > 0, _letter(letters, last) + 1, 0)
    return Answers(
        texts=_texts(contexts, starts, ends),
        starts=starts,
        ends=ends,
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

    Args:
        shown: int32 [B, C], the texts' code points, padded with `NO_CHARACTER`.
        patterns: string [B].

    Returns:
        The position and the pattern's length, int64 [B], and whether the pattern
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


def _at_indices(values, indices):
    """Returns values[b, indices[b]] for each row b."""
    last = tf.shape(values, tf.int64)[1] - 1
    return tf.gather(values, tf.clip_by_value(indices, 0, last), batch_dims=1)


def _letter(letters, numbers):
    """Returns the position of one letter of each row; 0 in a row without letters."""
    has_letters = letters.row_lengths() > 0
    index = tf.where(has_letters, letters.row_starts() + numbers, 0)
    index = tf.minimum(index, tf.size(letters.values, tf.int64))
    positions = tf.concat([letters.values, [0]], axis=0)
    return tf.where(has_letters, tf.gather(positions, index), 0)


def _texts(contexts, starts, ends):
    cut = tf.strings.substr(contexts.texts, starts, ends - starts, unit="UTF8_CHAR")
    return tf.strings.regex_replace(cut, r"[ \t\r\n\x{202F}]+", " ")
