"""The SavedModel of a tagger: texts to words and their tags.

Shape letters: B texts, P pieces, N windows, S sequence, W words, C classes.
"""

import dataclasses
from typing import Any

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.data import packing
from bert_tf.serving import options as serving_options
from bert_tf.serving import signatures
from bert_tf.serving import tag_words

# Pads the positions of texts with fewer words.
NO_WORD = -1


class TagSignatures(signatures.TaskSignatures):
    """The functions of a trained tagger.

    Args:
        predictor: `token_classification.predictor.Predictor`.
        limits: limits of the requests.

    Attributes:
        functions: `serving_default` takes `text`, string [B], of any length. It returns
            `words` and `tags`, string [B, W], padded with "", and `starts` and `ends`,
            int64 [B, W], characters of the text, padded with `NO_WORD`. `ids` returns
            `logits`, float32 [B, S, C].
    """

    HAS_POSITIONS = True

    def __init__(self, predictor: Any, limits: serving_options.RequestLimits):
        super().__init__(
            predictor,
            predictor.tokenizer,
            limits,
            serving_default=(self._of_texts, signatures.texts("text")),
        )
        self._split = tag_words.WordSplitter(predictor.task.whole_words)
        cases = predictor.task.true_cases
        self._true_casing = None if cases is None else tag_words.TrueCasing(cases)

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `logits`."""
        return {"logits": self.predictor.model(features)["logits"]}

    def _of_texts(self, text):
        found = self._split(text)
        tags = found.words.with_values(self._tags(found.words))
        return {
            "words": found.words.to_tensor(""),
            "tags": tags.to_tensor(""),
            "starts": found.starts.to_tensor(NO_WORD),
            "ends": found.ends.to_tensor(NO_WORD),
        }

    def _tags(self, words):
        """Returns the tags of all words, string [words of all texts]."""
        vocabulary, task = self.predictor.vocabulary, self.predictor.task
        if self._true_casing is not None:
            words = self._true_casing(words)
        pieces = self._tokenizer.tokenize(words.values)
        # A word without any pieces gets a tag too, that of [UNK].
        unknown = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(unknown)], vocabulary.unk_id), unknown
        )
        pieces = words.with_values(tf.concat([pieces, unknown], axis=1))
        windows = _windows(pieces, task.windowing)
        features = graph_packing.framed(
            windows.piece_ids, cls_id=vocabulary.cls_id, sep_id=vocabulary.sep_id
        )
        logits = self.in_parts(features)["logits"]
        indices = tf.stack([windows.row, windows.position + 1], axis=1)  # After [CLS].
        best = tf.argmax(tf.gather_nd(logits, indices), axis=-1)
        return tf.gather(tf.constant(task.labels), best)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Windows:
    """The windows over some texts, in order."""

    piece_ids: tf.RaggedTensor  # int32 [N, pieces]
    row: tf.Tensor  # int64 [W]: the window from which each word takes its tag.
    position: tf.Tensor  # int64 [W]: the word's first piece there, without [CLS].


def _windows(pieces, windowing):
    """Returns the windows, and from which of them each word takes its tag.

    The TensorFlow version of `token_classification.features`, which has the reasons.

    Args:
        pieces: int32 [B, words, pieces]; a word has at least one piece.
        windowing: capacity and stride.
    """
    ids = pieces.merge_dims(1, 2)  # [B, P]
    lengths = ids.row_lengths()
    capacity = tf.constant(windowing.capacity, tf.int64)
    stride = tf.constant(windowing.doc_stride, tf.int64)
    counts = 1 - (-tf.maximum(lengths - capacity, 0) // stride)  # [B]
    text = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)  # [N]
    start = tf.ragged.range(counts).values * stride
    end = tf.minimum(start + capacity, tf.gather(lengths, text))
    begin = tf.gather(ids.row_starts(), text)
    indices = tf.ragged.range(begin + start, begin + end)
    row = _best_windows(pieces, start, end, counts, windowing)
    return _Windows(
        piece_ids=indices.with_values(tf.gather(ids.values, indices.values)),
        row=row,
        position=pieces.values.row_starts() - tf.gather(begin + start, row),
    )


def _best_windows(pieces, start, end, counts, windowing):
    """Returns for each word the window with the most context on its shorter side, [W].

    Args:
        pieces: the pieces by text and word.
        start, end: int64 [N], each window's first piece in its text and the one after
            its last.
        counts: int64 [B], windows of each text.
        windowing: capacity and stride.
    """
    capacity = tf.constant(windowing.capacity, tf.int64)
    stride = tf.constant(windowing.doc_stride, tf.int64)
    text = pieces.value_rowids()  # [W]
    words = pieces.values.row_starts()  # [W], the first piece of each word.
    first = words - tf.gather(pieces.merge_dims(1, 2).row_starts(), text)
    # Windows start at the multiples of the stride, so those with the word are a range.
    earliest = tf.maximum(-(-(first - capacity + 1) // stride), 0)
    latest = tf.minimum(first // stride, tf.gather(counts, text) - 1)
    first_window = tf.gather(tf.cumsum(counts, exclusive=True), text)
    window = tf.ragged.range(first_window + earliest, first_window + latest + 1)
    word = window.value_rowids()  # [pairs of a word and a window]
    window = window.values
    before = tf.gather(first, word) - tf.gather(start, window)
    after = tf.gather(end, window) - 1 - tf.gather(first, word)
    length = tf.cast(tf.gather(end - start, window), tf.float64)
    score = tf.cast(tf.minimum(before, after), tf.float64)
    score += packing.CONTEXT_LENGTH_WEIGHT * length
    best = tf.math.segment_max(score, word)
    is_best = score == tf.gather(best, word)
    return tf.math.segment_min(
        tf.boolean_mask(window, is_best), tf.boolean_mask(word, is_best)
    )
