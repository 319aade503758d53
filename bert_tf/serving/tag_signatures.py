"""The SavedModel of a tagger: texts to words and their tags.

`tokenization.words` does the same in Python: a SavedModel cannot call it, and if
`predict` used this graph, it would wait for TensorFlow to trace it.

Shape letters: B texts, P pieces, N windows, S sequence, W words, C classes.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.serving import signatures
from bert_tf.serving import word_splitting
from bert_tf.tokenization import characters
from bert_tf.tokenization import words as words_module

# Pads the positions of texts with fewer words.
NO_WORD = -1
_APOSTROPHES = words_module.APOSTROPHE + words_module.TYPOGRAPHIC_APOSTROPHE


class TagSignatures(signatures.TaskSignatures):
    """The functions of a trained tagger.

    Args:
        predictor: of a trained tagger.

    Attributes:
        functions: `serving_default` takes `text`, string [B], of any length. It returns
            `words` and `tags`, string [B, W], padded with "", and `starts` and `ends`,
            int64 [B, W], characters of the text, padded with `NO_WORD`. `entities`
            returns also `probabilities`, float32 [B, W], of the tags, and for each
            entity its `entity_labels`, `entity_texts`, `entity_starts`, `entity_ends`
            and `entity_scores` [B, E]. `ids` returns `logits`, float32 [B, S, C].
    """

    HAS_POSITIONS = True

    def __init__(self, predictor: Any):
        texts = signatures.texts("text")
        super().__init__(predictor, entities=(self._with_entities, texts))
        self._splitter = WordSplitter(predictor.task.whole_words)
        cases = predictor.task.true_cases
        self._true_casing = None if cases is None else TrueCasing(cases)

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `logits`."""
        return {"logits": self.predictor.model(features)["logits"]}

    def _of_texts(self, text):
        split = self._splitter(text)
        return self._tagged(split, self._word_logits(split.words))

    def _with_entities(self, text):
        split = self._splitter(text)
        logits = self._word_logits(split.words)
        best = tf.argmax(logits, axis=-1)
        probabilities = tf.reduce_max(tf.nn.softmax(logits), axis=-1)
        return {
            **self._tagged(split, logits),
            "probabilities": split.words.with_values(probabilities).to_tensor(),
            **self._entities(split, best, probabilities),
        }

    def _tagged(self, split, logits):
        labels = tf.constant(self.predictor.task.labels)
        tags = split.words.with_values(tf.gather(labels, tf.argmax(logits, axis=-1)))
        return {
            "words": split.words.to_tensor(""),
            "tags": tags.to_tensor(""),
            "starts": split.starts.to_tensor(NO_WORD),
            "ends": split.ends.to_tensor(NO_WORD),
        }

    def _entities(self, split, best, probabilities):
        """Returns the entities of texts, as `schemes.entities` finds them."""
        task = self.predictor.task
        kinds, table = task.label_types(), task.entity_begins()
        number = tf.ragged.range(split.words.row_lengths()).values
        start = tf.constant(len(task.labels), tf.int64)
        before = tf.where(number == 0, start, tf.roll(best, 1, axis=0))
        begins = tf.gather_nd(tf.constant(table), tf.stack([before, best], axis=1))
        entity = tf.cumsum(tf.cast(begins, tf.int64)) - 1  # Of each word [W].
        # After O, every other tag begins an entity.
        word = tf.where(tf.gather(tf.constant(table[-1]), best))[:, 0]
        entity = tf.gather(entity, word)
        first, last = tf.where(begins)[:, 0], tf.math.segment_max(word, entity)
        text = tf.gather(split.words.value_rowids(), first)
        starts = tf.gather(split.starts.values, first)
        ends = tf.gather(split.ends.values, last)
        columns = {
            "labels": tf.gather(tf.constant(kinds), tf.gather(best, first)),
            "texts": tf.strings.substr(
                tf.gather(split.texts, text), starts, ends - starts, unit="UTF8_CHAR"
            ),
            "starts": starts,
            "ends": ends,
            "scores": tf.math.segment_mean(tf.gather(probabilities, word), entity),
        }
        padding = {"starts": NO_WORD, "ends": NO_WORD}
        count = split.words.nrows()
        return {
            f"entity_{name}": tf.RaggedTensor.from_value_rowids(
                values, text, count, validate=False
            ).to_tensor(padding.get(name))
            for name, values in columns.items()
        }

    def _word_logits(self, words):
        """Returns the logits of all words, float32 [words of all texts, C]."""
        vocabulary, task = self.predictor.vocabulary, self.predictor.task
        if self._true_casing is not None:
            words = self._true_casing(words)
        pieces = self._tokenizer.tokenize(words.values)
        # A word without any pieces gets a tag too, that of [UNK].
        unknown = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(unknown)], vocabulary.unk_id), unknown
        )
        pieces = tf.concat([pieces, unknown], axis=1)  # [words, pieces]
        ids = words.with_values(pieces).merge_dims(1, 2)  # [B, P]
        windows = graph_packing.windows_over(
            ids.row_lengths(), task.capacity, task.doc_stride
        )
        piece_ids = graph_packing.part(ids, windows.text, windows.start, windows.length)
        logits = self.in_parts(graph_packing.framed(piece_ids, **self._frame))["logits"]
        first = pieces.row_starts()  # Of each word, among the pieces of all texts.
        row = tf.gather(graph_packing.best_windows(windows, ids.row_starts()), first)
        begin = tf.gather(ids.row_starts(), windows.text) + windows.start
        position = first - tf.gather(begin, row) + 1  # After [CLS].
        return tf.gather_nd(logits, tf.stack([row, position], axis=1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Borders:
    """Places in chunks, int64 [N] each, at which words begin."""

    begin: tf.Tensor  # Of the word between the outer marks.
    divided: tf.Tensor  # Of a suffix such as "'s"; `begin` if there is none.
    end: tf.Tensor  # Of the outer marks after it.


class WordSplitter(tf.Module):
    """Splits texts as `tokenization.words.split_text` does, with its rules.

    N chunks of all texts, C characters of all chunks.

    Args:
        whole_words: see `split_text`.
    """

    def __init__(self, whole_words: Iterable[str]):
        super().__init__()
        self._whole_words = _table(dict.fromkeys(whole_words, True), default=False)

    def __call__(self, texts: tf.Tensor) -> word_splitting.TextWords:
        """Returns the words of texts.

        Args:
            texts: string [B], UTF-8.
        """
        chunks = word_splitting.split(
            texts, separators=characters.WHITESPACE, alone=words_module.ALONE
        )
        starts = tf.gather(chunks.codes.row_starts(), chunks.words.value_rowids())
        starts += chunks.starts.values  # Among the characters of all texts.
        lengths = chunks.ends.values - chunks.starts.values
        places = tf.ragged.range(starts, starts + lengths)  # [N, characters]
        codes = tf.gather(chunks.codes.flat_values, places.values)  # [C]
        borders = self._borders(chunks, places.with_values(codes))
        within = places.values - tf.gather(starts, places.value_rowids())  # [C]

        def by_character(values):
            return tf.gather(values, places.value_rowids())

        is_border = within == 0
        for border in (borders.begin, borders.divided, borders.end):
            is_border |= within == by_character(border)
        is_outer = within < by_character(borders.begin)
        is_outer |= within >= by_character(borders.end)
        is_border |= is_outer & (codes != tf.roll(codes, 1, axis=0))
        first = tf.where(is_border)[:, 0]
        count = tf.shape(codes, tf.int64)
        return word_splitting.words_at(
            chunks.texts,
            chunks.codes,
            tf.gather(places.values, first),
            tf.concat([first[1:], count], axis=0) - first,
        )

    def _borders(self, chunks, codes):
        """Returns borders in chunks; `codes` has their code points, int32 [N, C]."""
        texts, lengths = chunks.words.values, codes.row_lengths()
        number = tf.ragged.range(chunks.words.row_lengths()).values
        is_last = number + 1 == tf.gather(
            chunks.words.row_lengths(), chunks.words.value_rowids()
        )
        is_mark = word_splitting.is_among(codes.values, characters.PUNCTUATION)
        within = tf.ragged.range(lengths).values
        rows = codes.value_rowids()
        # In a chunk that contains only marks, all borders are 0.
        zero, outside = tf.constant(0, tf.int64), tf.gather(lengths, rows)
        begin = tf.math.segment_min(tf.where(is_mark, outside, within), rows)
        end = tf.math.segment_max(tf.where(is_mark, zero, within + 1), rows)
        begin = tf.where(end > 0, begin, zero)
        word = tf.strings.substr(texts, begin, end + 1 - begin, unit="UTF8_CHAR")
        has_mark = (end > 0) & (end < lengths) & self._is_whole(word, is_last)
        end += tf.cast(has_mark, tf.int64)
        word = tf.strings.substr(
            texts, tf.maximum(begin - 1, zero), end + 1 - begin, unit="UTF8_CHAR"
        )
        has_mark = (begin > 0) & self._whole_words.lookup(word)
        begin -= tf.cast(has_mark, tf.int64)
        word = tf.strings.substr(texts, begin, end - begin, unit="UTF8_CHAR")
        divided = end - self._suffix_lengths(word)
        is_whole = self._whole_words.lookup(texts)
        return _Borders(
            begin=tf.where(is_whole, zero, begin),
            divided=tf.where(is_whole, zero, tf.where(divided < end, divided, begin)),
            end=tf.where(is_whole, lengths, end),
        )

    def _is_whole(self, words, is_last):
        """Returns whether the marks at the end of words belong to them, bool [N]."""
        is_whole = self._whole_words.lookup(words)
        is_whole |= tf.strings.regex_full_match(words, words_module.ABBREVIATION)
        is_initial = tf.strings.regex_full_match(words, words_module.INITIAL)
        return is_whole | (is_initial & ~is_last)

    def _suffix_lengths(self, words):
        """Returns the lengths of suffixes to take off, 0 for none: int64 [N]."""
        suffix = tf.strings.regex_replace(
            words, f"(?s)^.*([{_APOSTROPHES}])", words_module.APOSTROPHE
        )
        is_suffix = tf.strings.regex_full_match(words, f"(?s).+[{_APOSTROPHES}].*")
        is_suffix &= self._whole_words.lookup(suffix)
        length = tf.strings.length(suffix, unit="UTF8_CHAR")
        return tf.cast(tf.where(is_suffix, length, 0), tf.int64)


class TrueCasing(tf.Module):
    """Rewrites all-capital sentences in the usual case of their words.

    The TensorFlow version of `tokenization.words.true_cased`, which has the
    rules. TensorFlow lacks the lowercase forms of 41 letters that Unicode 14 added.

    Args:
        cases: from `words.learned_cases`.
    """

    def __init__(self, cases: Mapping[str, str]):
        super().__init__()
        self._cases = _table(cases, default="")

    def __call__(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns the words in the case for tokenizing, string [B, words].

        Args:
            words: string [B, words].
        """
        texts = words.values  # [N]
        lower, upper = _lower(texts), _upper(texts)
        is_cased = lower != upper
        letters = tf.strings.regex_replace(texts, r"\PL", "")
        is_capitals = is_cased & (tf.strings.length(letters, unit="UTF8_CHAR") > 1)
        counts = [
            tf.reduce_sum(words.with_values(tf.cast(flags, tf.int32)), axis=1)
            for flags in (is_capitals, is_cased & (texts != upper))
        ]
        is_all_capitals = (counts[0] > 1) & (counts[1] == 0)  # [B]
        usual = self._cases.lookup(lower)
        first = tf.strings.substr(lower, 0, 1, unit="UTF8_CHAR")
        rest = tf.strings.regex_replace(lower, r"(?s)^.", "")
        usual = tf.where(usual == "", tf.strings.join([_upper(first), rest]), usual)
        is_rewritten = tf.gather(is_all_capitals, words.value_rowids())
        return words.with_values(tf.where(is_rewritten, usual, texts))


def _table(values, default):
    """Returns a lookup table of texts; it has "", because it must not be empty."""
    keys, items = tf.constant(["", *values]), tf.constant([default, *values.values()])
    initializer = tf.lookup.KeyValueTensorInitializer(keys, items)
    return tf.lookup.StaticHashTable(initializer, default_value=default)


def _lower(texts):
    return tf.strings.lower(texts, encoding="utf-8")


def _upper(texts):
    return tf.strings.upper(texts, encoding="utf-8")
