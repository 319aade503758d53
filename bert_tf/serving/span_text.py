"""From the pieces of an answer back to the characters of its context, in a graph.

As `question_answering.alignment` does it in Python, where the reasons stand.

Shape letters: B questions, W words, T tokens, C characters.
"""

import dataclasses

import tensorflow as tf

from bert_tf.serving import text_words

SPACE = ord(" ")
NO_CHARACTER = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """Where answers stand in their contexts, and what they are."""

    texts: tf.Tensor  # string [B], with one space between words.
    starts: tf.Tensor  # int64 [B]
    ends: tf.Tensor  # int64 [B]


def answers(
    contexts: text_words.TextWords,
    first_word,
    num_words,
    wanted,
    basic_tokens,
) -> Answers:
    """Returns the answers that some words of contexts hold.

    Args:
        contexts: the contexts' words, B rows.
        first_word: int64 [B], the number of the answer's first one.
        num_words: int64 [B]; 0 for no answer: its text is "", its place 0.
        wanted: string [B], the text that the answer's pieces are.
        basic_tokens: function from texts to their words as the tokenizer has them:
            string [N] to int32 RaggedTensor [N, T, C].
    """
    first = contexts.words.row_starts() + first_word  # Among all words.
    numbers = tf.ragged.range(first, first + num_words)  # [B, W]
    letters = _letters(contexts, numbers)
    shown = _joined(basic_tokens(tf.gather(contexts.words.values, numbers.values)))
    shown = _by_row(shown, numbers.row_splits)  # [B, C]
    is_space = shown.with_values(tf.cast(shown.values == SPACE, tf.int64))
    shown = shown.to_tensor(NO_CHARACTER)
    start, length, is_found = _find(shown, wanted)
    num_letters = tf.reduce_sum(1 - is_space, axis=1)
    is_found &= num_letters == letters.row_lengths()
    # Places among the letters, without the spaces.
    spaces = tf.cumsum(tf.pad(is_space.to_tensor(), [[0, 0], [1, 1]]), axis=1)
    begin = tf.where(is_found, start - _at(spaces, start), 0)
    last = start + length - 1
    last = tf.where(is_found, last - _at(spaces, last), letters.row_lengths() - 1)
    starts = _letter(letters, begin)
    ends = tf.where(num_words > 0, _letter(letters, last) + 1, 0)
    return Answers(
        texts=_texts(contexts, starts, ends),
        starts=starts,
        ends=ends,
    )


def _letters(contexts, numbers):
    """Returns the places of all characters of some words: int64 [B, C]."""
    places = tf.ragged.range(
        tf.gather(contexts.starts.values, numbers.values),
        tf.gather(contexts.ends.values, numbers.values),
    )
    return _by_row(places, numbers.row_splits)


def _by_row(values, splits):
    """Returns [B, C] of [N, C], of which each row of B has some, end to end."""
    return tf.RaggedTensor.from_row_splits(
        values.values, tf.gather(values.row_splits, splits), validate=False
    )


def _joined(tokens):
    """Returns [N, C] of [N, T, C], with a space after each token."""
    each = tokens.values  # [tokens, C]
    spaced = tf.concat([each, tf.fill([each.nrows(), 1], SPACE)], axis=1)
    return _by_row(spaced, tokens.row_splits)


def _find(shown, wanted):
    """Returns where texts first stand in others.

    Args:
        shown: int32 [B, C], code points and then `NO_CHARACTER`.
        wanted: string [B]

    Returns:
        The place, the length of what is wanted, int64 [B], and whether it is found,
        bool [B]: nothing is found where nothing is wanted.
    """
    wanted = tf.strings.unicode_decode(wanted, "UTF-8")
    lengths = wanted.row_lengths()
    wanted = wanted.to_tensor(NO_CHARACTER)  # [B, M]
    num_places = tf.shape(shown)[1] + 1
    padding = [[0, 0], [0, tf.shape(wanted)[1] + 1]]
    shown = tf.pad(shown, padding, constant_values=NO_CHARACTER)

    def with_one_more(number, matches):
        here = wanted[:, number, tf.newaxis]
        agrees = shown[:, number : number + num_places] == here
        return number + 1, matches & (agrees | (here == NO_CHARACTER))

    _, matches = tf.while_loop(
        lambda number, matches: number < tf.shape(wanted)[1],
        with_one_more,
        (0, tf.ones([tf.shape(shown)[0], num_places], bool)),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, None])),
    )
    is_found = tf.reduce_any(matches, axis=1) & (lengths > 0)
    return tf.argmax(tf.cast(matches, tf.int8), axis=1), lengths, is_found


def _at(values, places):
    """Returns values[b, places[b]] of each row."""
    last = tf.shape(values, tf.int64)[1] - 1
    return tf.gather(values, tf.clip_by_value(places, 0, last), batch_dims=1)


def _letter(letters, numbers):
    """Returns the place of a letter of each row, 0 in a row without any."""
    is_there = letters.row_lengths() > 0
    index = tf.where(is_there, letters.row_starts() + numbers, 0)
    index = tf.minimum(index, tf.size(letters.values, tf.int64))
    places = tf.concat([letters.values, [0]], axis=0)
    return tf.where(is_there, tf.gather(places, index), 0)


def _texts(contexts, starts, ends):
    cut = tf.strings.substr(contexts.texts, starts, ends - starts, unit="UTF8_CHAR")
    return tf.strings.regex_replace(cut, r"[ \t\r\n\x{202F}]+", " ")
