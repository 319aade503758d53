"""The same tokenizer as TensorFlow ops: for tf.data, tf.function and SavedModels.

ASCII text takes TensorFlow Text's fast tokenizer, which agrees with the release on
ASCII. All other text is split into words by `in_graph_words`, because TensorFlow Text's
own normalization gives different ids for thousands of characters.
"""

import functools
import itertools
import logging
import os
from collections.abc import Sequence

import tensorflow as tf

from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph_words
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

try:
    import tensorflow_text as tf_text
except ImportError:  # TensorFlow Text has no wheels for Windows.
    tf_text = None

logger = logging.getLogger(__name__)

# Excludes the control characters, which TensorFlow Text turns into spaces.
PLAIN_ASCII = r"[\t\n\r -~]*"
MAX_BYTES_PER_CHARACTER = 4
MAX_BYTES_PER_WORD = wordpiece.MAX_INPUT_CHARS_PER_WORD * MAX_BYTES_PER_CHARACTER
PRIVATE_USE = "\ue000[\ue000"
UNKNOWN_WORD = "a" * (MAX_BYTES_PER_WORD + 1)
# Each op runs on one core, so a large batch is cut into parts that run at once.
NUM_PARTS = 4
MIN_ROWS_PER_PART = 64
# Below this size, splitting texts in Python takes less time than calling the graph.
MAX_BYTES_IN_PYTHON = 4096


class InGraphTokenizer(tf.Module):
    """Computes the same ids as `FullTokenizer`, with TensorFlow ops.

    It uses only ops of TensorFlow and TensorFlow Text, which model servers have. Where
    TensorFlow Text is not installed, texts outside of graphs are tokenized in Python.

    Args:
        vocab_file: path of a vocabulary, or a `Vocabulary`.
        do_lower_case: whether to lowercase.
        strip_accents: whether to strip accents. None means the value of
            `do_lower_case`.
        never_split: tokens of the vocabulary that are kept whole wherever they occur
            in a text, such as ("[MASK]",).

    Attributes:
        vocabulary: the `Vocabulary`.

    Raises:
        OSError: the vocabulary cannot be read.
        ValueError: the file is not a vocabulary, lacks a token of `never_split`, has a
            token of more than 256 bytes, or has only the special tokens.
    """

    def __init__(
        self,
        vocab_file: str | os.PathLike | vocabulary_module.Vocabulary,
        do_lower_case: bool = True,
        *,
        strip_accents: bool | None = None,
        never_split: Sequence[str] = (),
    ):
        super().__init__()
        self._full_tokenizer = full.FullTokenizer(
            vocab_file,
            do_lower_case,
            strip_accents=strip_accents,
            never_split=never_split,
        )
        self.vocabulary = self._full_tokenizer.vocabulary
        basic = self._full_tokenizer.basic_tokenizer
        self.never_split = basic.never_split
        self._do_lower_case = do_lower_case
        if tf_text is None:
            _warn_of_missing_ops()
            return
        # The tables are eager constants, so that any graph can capture them even if the
        # tokenizer is created inside another graph.
        with tf.init_scope(), tf.device("/CPU:0"):
            self._words = in_graph_words.InGraphWords(
                do_lower_case=do_lower_case, strip_accents=basic.strip_accents
            )
            self._create_wordpiece_tokenizers()

    def tokenize(self, strings: tf.Tensor | Sequence[str]) -> tf.RaggedTensor:
        """Returns the ids of the word pieces of texts.

        Args:
            strings: tf.string tensor [B] or a value that converts to one, in UTF-8;
                invalid bytes are dropped.

        Returns:
            int32 tf.RaggedTensor [B, pieces].

        Raises:
            ImportError: this is inside a graph, and TensorFlow Text is not installed.
            ValueError: `strings` is not of rank 1.
        """
        strings = tf.convert_to_tensor(strings, tf.string)
        if strings.shape.rank not in (None, 1):
            raise ValueError(f"Expected texts of shape [B], got {strings.shape}.")
        if tf_text is None:
            if not tf.executing_eagerly():
                check_ops()
            rows = self._in_python(strings.numpy().tolist())
            return tf.ragged.constant(rows, tf.int32, ragged_rank=1)
        return self._tokenize(strings)

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of the word pieces of texts, as lists.

        Raises:
            UnicodeEncodeError: a text has half of a surrogate pair.
        """
        sizes = itertools.accumulate(len(text.encode()) for text in texts)
        if any(size > MAX_BYTES_IN_PYTHON for size in sizes):
            return self.tokenize([text.encode() for text in texts]).to_list()
        return self._in_python(texts)

    def _in_python(self, texts):
        tokenizer = self._full_tokenizer
        return [
            tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) for text in texts
        ]

    def basic_tokens(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Returns the words that `BasicTokenizer` finds, before they become pieces.

        Args:
            strings: tf.string tensor [B].

        Returns:
            int32 tf.RaggedTensor [B, words, characters] of code points. Here, tokens of
            `never_split` are split like other text.

        Raises:
            ImportError: TensorFlow Text is not installed.
        """
        check_ops()
        with tf.device("/CPU:0"):
            return self._words.words(strings)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def _tokenize(self, strings):
        with tf.device("/CPU:0"):
            if not self.never_split:
                return self._tokenize_in_parts(strings)
            return self._tokenize_around_never_split(strings)

    def _create_wordpiece_tokenizers(self):
        options = {
            "vocab": list(map(_without_space, self.vocabulary.tokens)),
            "suffix_indicator": wordpiece.CONTINUATION,
            "unknown_token": vocabulary_module.UNK,
            "token_out_type": tf.int32,
        }
        try:
            self._ascii_tokenizer = tf_text.FastBertTokenizer(
                max_bytes_per_word=wordpiece.MAX_INPUT_CHARS_PER_WORD,
                lower_case_nfd_strip_accents=self._do_lower_case,
                **options,
            )
            self._wordpiece_tokenizer = tf_text.FastWordpieceTokenizer(
                max_bytes_per_word=MAX_BYTES_PER_WORD,
                no_pretokenization=True,
                **options,
            )
        except RuntimeError as error:
            raise ValueError(
                f"TensorFlow Text cannot use this vocabulary of {len(self.vocabulary)} "
                f"tokens: {error}"
            ) from error

    def _tokenize_around_never_split(self, strings):
        # Drops invalid bytes first, as the Python tokenizer does: they could hide a
        # token.
        strings = tf.strings.unicode_transcode(
            strings, "UTF-8", "UTF-8", errors="ignore"
        )
        pattern = "|".join(map(_quoted_for_re2, self.never_split))
        marked = tf.strings.regex_replace(strings, f"({pattern})", b"\xff\\1\xff")
        parts = tf.strings.split(marked, b"\xff")  # [B, parts]
        texts = parts.flat_values
        same = texts[:, tf.newaxis] == tf.constant(self.never_split)
        is_whole = tf.reduce_any(same, axis=1)
        ids = tf.constant([self.vocabulary[token] for token in self.never_split])
        whole = tf.gather(ids, tf.argmax(tf.cast(same, tf.int32), axis=1))
        whole = tf.ragged.boolean_mask(whole[:, tf.newaxis], is_whole[:, tf.newaxis])
        pieces = self._tokenize_in_parts(tf.where(is_whole, "", texts))
        pieces = tf.concat([pieces, whole], axis=1)  # [B * parts, pieces]
        return parts.with_flat_values(pieces).merge_dims(1, 2)

    def _tokenize_in_parts(self, strings):
        rows = tf.shape(strings)[0]

        def in_parts():
            bounds = [rows * part // NUM_PARTS for part in range(NUM_PARTS + 1)]
            return tf.concat(
                [
                    self._tokenize_rows(strings[start:stop])
                    for start, stop in itertools.pairwise(bounds)
                ],
                axis=0,
            )

        return tf.cond(
            rows < NUM_PARTS * MIN_ROWS_PER_PART,
            lambda: self._tokenize_rows(strings),
            in_parts,
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def _tokenize_rows(self, strings):
        is_ascii = tf.strings.regex_full_match(strings, PLAIN_ASCII)
        ascii_rows = tf.where(is_ascii)[:, 0]
        other_rows = tf.where(~is_ascii)[:, 0]
        ascii_words = self._ascii_tokenizer.tokenize(tf.gather(strings, ascii_rows))
        other = self._tokenize_code_points(tf.gather(strings, other_rows))
        both = tf.concat([ascii_words, other], axis=0)
        rows = tf.concat([ascii_rows, other_rows], axis=0)
        return tf.gather(both, tf.math.invert_permutation(rows))

    def _tokenize_code_points(self, strings):
        """Does what `_tokenize_rows` does, for any characters."""
        rows = self._words.words(strings)  # [B, words, characters]
        words = tf.strings.unicode_encode(rows.values, "UTF-8")
        lengths = rows.values.row_lengths()
        is_long = lengths > wordpiece.MAX_INPUT_CHARS_PER_WORD
        words = tf.where(is_long, UNKNOWN_WORD, words)
        pieces = self._wordpiece_tokenizer.tokenize(words)  # [words, pieces]
        return tf.RaggedTensor.from_row_splits(
            pieces.values,
            tf.gather(pieces.row_splits, rows.row_splits),
            validate=False,
        )


def _without_space(token):
    """Returns a replacement that no text can match for a token with white space.

    The release can never produce such a token, because a word has no white space in it.
    TensorFlow Text would match it: "new york" for example.
    """
    parts = token.split()
    return PRIVATE_USE.join(parts) if len(parts) > 1 else token


def _quoted_for_re2(text):
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text)


def check_ops() -> None:
    """Raises an ImportError if TensorFlow Text is not installed."""
    if tf_text is None:
        raise ImportError(
            "TensorFlow Text is not installed, but tokenization in the graph needs its "
            "operations: exports and their queries, and text in tf.data. Run pip "
            "install tensorflow-text; it does not exist for Windows, so use WSL there."
        )


@functools.cache
def _warn_of_missing_ops():
    logger.warning(
        "TensorFlow Text is not installed (on Windows, use WSL). Texts are tokenized "
        "in Python, with the same ids, but more slowly."
    )
