"""The same tokenizer as TensorFlow ops: for tf.data, tf.function and SavedModels.

Text of ASCII characters takes TensorFlow Text's fast tokenizer, which agrees with the
release there. All other text is decoded into code points, each of which is looked up in
a table of what it becomes (`code_points`): TensorFlow's own Unicode functions depend
on the version of its ICU library and on the locale, and differ from the release's.
"""

import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import code_points
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabularies
from bert_tf.tokenization import wordpiece

# Without the control characters, which TensorFlow Text turns into spaces.
PLAIN_ASCII = r"[\t\n\r -~]*"
MAX_BYTES_PER_CHARACTER = 4
MAX_BYTES_PER_WORD = wordpiece.MAX_INPUT_CHARS_PER_WORD * MAX_BYTES_PER_CHARACTER
PRIVATE_USE = "\ue000[\ue000"
UNKNOWN_WORD = "a" * (MAX_BYTES_PER_WORD + 1)


class InGraphTokenizer(tf.Module):
    """Gives the ids of `FullTokenizer` for every input, from TensorFlow ops.

    The ops are TensorFlow's and TensorFlow Text's own, which model servers know.

    Args:
        vocab_file: path of a vocabulary, or a `Vocabulary`.
        do_lower_case: whether to lower-case, and to strip accents unless told.
        strip_accents: whether to strip accents; None: as `do_lower_case`.
        never_split: tokens of the vocabulary that are kept whole wherever they occur
            in a text, such as ("[MASK]",).

    Attributes:
        vocabulary: the `Vocabulary`.

    Raises:
        OSError: the vocabulary cannot be read.
        ValueError: the file is no vocabulary, lacks a token of `never_split`, has a
            token of more than 256 bytes, or none but the special ones.
    """

    def __init__(
        self, vocab_file, do_lower_case=True, *, strip_accents=None, never_split=()
    ):
        super().__init__()
        self.vocabulary = full.load_vocabulary(vocab_file)
        self.never_split = basic.checked_never_split(never_split)
        full.check_never_split(self.never_split, self.vocabulary)
        self._do_lower_case = do_lower_case
        self._strip_accents = do_lower_case if strip_accents is None else strip_accents
        # The tables are constants that every graph captures, wherever this is called.
        with tf.init_scope(), tf.device("/CPU:0"):
            self._create_tables()
            self._create_wordpiece_tokenizers()

    def tokenize(self, strings):
        """Returns the ids of the word pieces of texts.

        Args:
            strings: tf.string tensor [B] (or what converts to one), UTF-8; bytes that
                are not UTF-8 are dropped.

        Returns:
            int32 tf.RaggedTensor [B, pieces].

        Raises:
            ValueError: `strings` is not of rank 1.
        """
        strings = tf.convert_to_tensor(strings, tf.string)
        if strings.shape.rank not in (None, 1):
            raise ValueError(f"Expected texts of shape [B], got {strings.shape}.")
        return self._tokenize(strings)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def _tokenize(self, strings):
        with tf.device("/CPU:0"):
            if not self.never_split:
                return self._tokenize_parts(strings)
            return self._tokenize_around_never_split(strings)

    def _create_tables(self):
        table = code_points.code_point_table(
            do_lower_case=self._do_lower_case, strip_accents=self._strip_accents
        )
        self._entry_page_starts = tf.constant(table.entries.page_starts)
        self._entry_values = tf.constant(table.entries.values)
        self._property_page_starts = tf.constant(table.properties.page_starts)
        self._property_values = tf.constant(table.properties.values)
        self._expansions = tf.constant(table.expansions)
        self._expansion_splits = tf.constant(table.expansion_splits)

    def _create_wordpiece_tokenizers(self):
        options = {
            "vocab": list(map(_without_space, self.vocabulary.tokens)),
            "suffix_indicator": wordpiece.CONTINUATION,
            "unknown_token": vocabularies.UNK,
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
        # Python decodes before it looks for the tokens, so bytes that are not UTF-8 go.
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
        pieces = self._tokenize_parts(tf.where(is_whole, "", texts))
        pieces = tf.concat([pieces, whole], axis=1)  # [B * parts, pieces]
        return parts.with_flat_values(pieces).merge_dims(1, 2)

    def _tokenize_parts(self, strings):
        is_ascii = tf.strings.regex_full_match(strings, PLAIN_ASCII)
        ascii_rows = tf.where(is_ascii)[:, 0]
        other_rows = tf.where(~is_ascii)[:, 0]
        ascii_words = self._ascii_tokenizer.tokenize(tf.gather(strings, ascii_rows))
        other = self._tokenize_code_points(tf.gather(strings, other_rows))
        both = tf.concat([ascii_words, other], axis=0)
        rows = tf.concat([ascii_rows, other_rows], axis=0)
        return tf.gather(both, tf.math.invert_permutation(rows))

    def _tokenize_code_points(self, strings):
        """As `_tokenize_parts`, for texts of any characters."""
        # A space before each text keeps its first word from the text before.
        decoded = tf.strings.unicode_decode(
            tf.strings.join([" ", strings]), "UTF-8", errors="ignore"
        )
        codes = decoded.flat_values
        if self._do_lower_case:
            codes = self._with_final_sigmas(codes)
        entries = _look_up(self._entry_page_starts, self._entry_values, codes)
        codes, groups, positions = self._map(codes, entries)
        # A word is a run of code points of one group.
        is_start = tf.concat([tf.ones_like(groups[:1], bool), _steps(groups)], axis=0)
        starts = tf.where(is_start)[:, 0]
        words = tf.RaggedTensor.from_row_starts(codes, starts, validate=False)
        row_starts = tf.searchsorted(tf.gather(positions, starts), decoded.row_splits)
        pieces = self._pieces(words)
        return tf.RaggedTensor.from_row_splits(
            pieces.values,
            tf.gather(pieces.row_splits, row_starts),
            validate=False,
        )

    def _pieces(self, words):
        """Returns ragged ids [words, pieces] of ragged code points [words, length]."""
        is_long = words.row_lengths() > wordpiece.MAX_INPUT_CHARS_PER_WORD
        words = tf.where(
            is_long, UNKNOWN_WORD, tf.strings.unicode_encode(words, "UTF-8")
        )
        return self._wordpiece_tokenizer.tokenize(words)

    def _map(self, codes, entries):
        """Returns what code points become.

        Args:
            codes: int32 [N], the texts' code points.
            entries: int32 [N], the table's entry for each.

        Returns:
            codes: int32 [M], without white space and what is dropped.
            groups: int32 [M], equal for the code points of one word, rising.
            positions: int64 [M], where in the N each comes from.
        """
        # White space steps by one. What is a word of its own steps by two, and stands
        # in the middle: no neighbour has its number.
        steps = tf.bitwise.bitwise_and(entries, code_points.SPACE | code_points.ALONE)
        groups = tf.cumsum(steps) - tf.bitwise.right_shift(steps, 1)
        gone = code_points.SPACE | code_points.DROPPED
        positions = tf.where(tf.bitwise.bitwise_and(entries, gone) == 0)[:, 0]
        kept = tf.gather(entries, positions)
        values = tf.bitwise.right_shift(kept, code_points.FLAG_BITS)
        mapped = tf.gather(codes, positions) + values
        mapped, positions = self._with_expansions(mapped, kept, values, positions)
        if self._strip_accents:
            mapped = self._in_canonical_order(mapped, codes, entries, positions)
        return mapped, tf.gather(groups, positions), positions

    def _with_expansions(self, mapped, kept, values, positions):
        """Puts several code points in the place of those that become several."""
        is_several = _flag(kept, code_points.SEVERAL) > 0

        def expanded():
            row = tf.where(is_several, values, 0)
            first = tf.gather(self._expansion_splits, row)
            lengths = tf.gather(self._expansion_splits, row + 1) - first
            lengths = tf.where(is_several, lengths, 1)
            within = tf.ragged.range(lengths).flat_values
            several = tf.gather(self._expansions, tf.repeat(first, lengths) + within)
            is_several_here = tf.repeat(is_several, lengths)
            one = tf.repeat(mapped, lengths)
            return (
                tf.where(is_several_here, several, one),
                tf.repeat(positions, lengths),
            )

        return tf.cond(tf.reduce_any(is_several), expanded, lambda: (mapped, positions))

    def _with_final_sigmas(self, codes):
        """Puts the final form in the place of capital sigmas that end a word."""
        is_sigma = codes == characters.CAPITAL_SIGMA

        def replaced():
            properties = self._properties(tf.concat([codes, [ord(" ")]], axis=0))
            counts = _flag(properties, code_points.IGNORABLE) == 0
            is_cased = _flag(tf.boolean_mask(properties, counts), code_points.CASED) > 0
            # A sigma counts itself, and a space stands at both ends.
            place = tf.boolean_mask(tf.cumsum(tf.cast(counts[:-1], tf.int32)), is_sigma)
            before = tf.gather(is_cased, place - 2)
            after = tf.gather(is_cased, place)
            final = tf.boolean_mask(tf.where(is_sigma), before & ~after)
            updates = tf.fill(tf.shape(final)[:1], ord(characters.FINAL_SIGMA))
            return tf.tensor_scatter_nd_update(codes, final, updates)

        return tf.cond(tf.reduce_any(is_sigma), replaced, lambda: codes)

    def _in_canonical_order(self, mapped, codes, entries, positions):
        """Sorts the marks that are left by their class, within each run of marks."""
        is_mark = _flag(entries, code_points.MARK) > 0

        def sorted_marks():
            joins = _flag(self._properties(codes), code_points.JOINS) > 0
            runs = tf.cumsum(tf.cast(~joins, tf.int64))
            classes = tf.bitwise.right_shift(
                self._properties(mapped), code_points.PROPERTY_BITS
            )
            places = tf.where(classes > 0)
            marks = tf.gather_nd(mapped, places)
            run = tf.gather(runs, tf.gather_nd(positions, places))
            key = run * 256 + tf.cast(tf.gather_nd(classes, places), tf.int64)
            order = tf.argsort(key, stable=True)
            return tf.tensor_scatter_nd_update(mapped, places, tf.gather(marks, order))

        return tf.cond(tf.reduce_any(is_mark), sorted_marks, lambda: mapped)

    def _properties(self, codes):
        return _look_up(self._property_page_starts, self._property_values, codes)


def _look_up(page_starts, values, codes):
    """Returns the value of a `code_points.PagedTable` for each code point."""
    bits = code_points.PAGE_BITS
    starts = tf.gather(page_starts, tf.bitwise.right_shift(codes, bits))
    return tf.gather(values, starts + tf.bitwise.bitwise_and(codes, (1 << bits) - 1))


def _flag(values, flag):
    """Returns 1 where a flag is set, else 0, int32."""
    return tf.cast(tf.bitwise.bitwise_and(values, flag) != 0, tf.int32)


def _steps(values):
    """Returns whether each value but the first differs from the one before."""
    return values[1:] != values[:-1]


def _without_space(token):
    """Returns a token that no text gives, for one that no text gives in the release.

    No word has white space in it, but TensorFlow Text finds "new york" all the same.
    """
    parts = token.split()
    return PRIVATE_USE.join(parts) if len(parts) > 1 else token


def _quoted_for_re2(text):
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text)
