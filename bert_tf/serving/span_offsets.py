"""The characters that word pieces cover, in a graph.

The TensorFlow version of `question_answering.alignment`, which explains the steps.

Shape letters: B words, P pieces, T tokens, C characters.
"""

from collections.abc import Callable

import tensorflow as tf

from bert_tf.tokenization import characters
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

_WITHOUT_SPACES = f"(?s).*[{characters.SCRIPTS_WITHOUT_SPACES}].*"


def is_without_spaces(texts: tf.Tensor) -> tf.Tensor:
    """Returns whether texts have a character of a script without spaces: bool [B]."""
    return tf.strings.regex_full_match(texts, _WITHOUT_SPACES)


def piece_spans(
    words: tf.Tensor,
    pieces: tf.RaggedTensor,
    index: tf.Tensor,
    basic_tokens: Callable[[tf.Tensor], tf.RaggedTensor],
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the start and the end of one piece in each word, and if they are known.

    Args:
        words: string [B].
        pieces: string [B, P], the pieces of each word.
        index: int64 [B], the piece of each word.
        basic_tokens: splits text as the tokenizer does before word pieces: string [N]
            to code points, int32 [N, T, C].
    """
    characters = tf.strings.unicode_split(words, "UTF-8")  # [B, C]
    letters = tf.reduce_sum(_token_lengths(basic_tokens(characters.values)), axis=1)
    letters = characters.with_values(letters).to_tensor()
    tokens = _token_lengths(basic_tokens(words)).to_tensor()  # [B, T]
    pieces = pieces.to_tensor("")  # [B, P]
    is_start = ~tf.strings.regex_full_match(pieces, f"{wordpiece.CONTINUATION}.+")
    token_of = tf.cumsum(tf.cast(is_start, tf.int64), axis=1) - 1
    shown = tf.strings.regex_replace(pieces, f"^{wordpiece.CONTINUATION}(.)", r"\1")
    sizes = tf.strings.length(shown, unit="UTF8_CHAR")
    sizes = tf.cast(sizes, tf.int64)
    token = _at(token_of, index)
    is_unknown = _at(pieces, index) == vocabulary_module.UNK
    position = tf.range(tf.shape(pieces, tf.int64)[1])[tf.newaxis]
    is_before = (token_of == token[:, tf.newaxis]) & (position < index[:, tf.newaxis])
    begin = _at(tf.cumsum(tokens, axis=1, exclusive=True), token)
    begin += tf.reduce_sum(tf.where(is_before, sizes, 0), axis=1)
    end = begin + tf.where(is_unknown, _at(tokens, token), _at(sizes, index))
    through = tf.cumsum(letters, axis=1)  # [B, C]
    is_mark = tf.strings.regex_full_match(characters.to_tensor(""), r"\p{Mn}")
    # A mark without letters of its own belongs to the character before it.
    owner = tf.cumsum(tf.cast(~(is_mark & (letters == 0)), tf.int64), axis=1)
    last = _at(owner, _num_true(through <= end[:, tf.newaxis] - 1))
    return (
        _num_true(through <= begin[:, tf.newaxis]),
        _num_true(owner <= last[:, tf.newaxis]),
        tf.reduce_sum(letters, axis=1) == tf.reduce_sum(tokens, axis=1),
    )


def _token_lengths(tokens):
    """Returns the number of letters of each token: int64 [N, T]."""
    return tokens.with_values(tokens.values.row_lengths())


def _num_true(conditions):
    return tf.reduce_sum(tf.cast(conditions, tf.int64), axis=1)


def _at(values, indices):
    """Returns values[b, indices[b]] for each row b."""
    last = tf.maximum(tf.shape(values, tf.int64)[1] - 1, 0)
    return tf.gather(values, tf.clip_by_value(indices, 0, last), batch_dims=1)
