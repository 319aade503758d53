"""Sentences to the columns that the model reads, and back from pieces to words.

Shape letters: N rows, S sequence, W words, C classes.
"""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import true_casing

# Tag of a piece that has none of its own.
NO_TAG = -1
# Words to a call of the tokenizer: enough for it to be busy.
WORDS_PER_CALL = 16384
# Weighs the length of a window against a word's context in it: it decides between
# equals. From _check_is_max_context of run_squad.py, 2018.
_LENGTH_WEIGHT = 0.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windowing:
    """How words become rows."""

    max_seq_length: int  # S, with [CLS] and [SEP].
    doc_stride: int  # Pieces between the starts of two windows.
    document_context: bool = False  # Windows over documents, not over sentences.
    # Usual forms of words, for sentences in capitals; None: these stay as they are.
    true_cases: Mapping[str, str] | None = None

    def __post_init__(self):
        if not 1 <= self.doc_stride <= self.capacity:
            raise ValueError(
                f"doc_stride: expected 1 to max_seq_length - 2 ({self.capacity}), or "
                f"words would stand in no window; got {self.doc_stride}."
            )

    @property
    def capacity(self) -> int:
        """Pieces in a window."""
        return self.max_seq_length - 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Features:
    """Rows of pieces, and where in them each word's tag is.

    Every word of the sentences, in their order, has its tag at one piece of one row.
    """

    columns: Mapping[str, np.ndarray]  # int32 [N, S], among them `tag_ids`.
    rows: np.ndarray  # int64 [W], rising.
    positions: np.ndarray  # int64 [W]: of the word's first piece in the row.

    def of_words(self, values: np.ndarray) -> np.ndarray:
        """Returns [W, ...] of [N, S, ...]: the values at the words' first pieces."""
        return values[self.rows, self.positions]

    def parts(self, num_rows: int) -> Iterator["Features"]:
        """Yields the same, so many rows at a time, and the words that are in them."""
        for start in range(0, len(self.columns["input_ids"]), num_rows):
            stop = start + num_rows
            words = slice(*np.searchsorted(self.rows, [start, stop]))
            yield Features(
                columns={name: c[start:stop] for name, c in self.columns.items()},
                rows=self.rows[words] - start,
                positions=self.positions[words],
            )


def convert_sentences_to_features(
    sentences: Sequence[examples.Sentence],
    labels: Sequence[str],
    tokenizer,
    windowing: Windowing,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> Features:
    """Returns the columns of some sentences, and where their words are.

    Words are tokenized one by one, and the tag stands at the first piece. A sentence
    that is longer than a row, or with `document_context` a document, is cut into
    windows that overlap. Each word has its tag in one of them only: the one in which
    the lesser of the numbers of pieces before and after it is greatest.

    Args:
        sentences: at least one; each word counts W up by one.
        labels: the tags, in the order of the model's outputs. A tag that is none of
            them, and sentences without tags, have `NO_TAG` in `tag_ids`.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        windowing: how words become rows.
        progress: told how many words are tokenized.

    Source: section 5.3 of the paper, and "Tokenization" in the README of 2018.
    """
    words = [
        words_to_tokenize(sentence.words, windowing.true_cases)
        for sentence in sentences
    ]
    ids_of = _ids_of_words(words, tokenizer, progress)
    id_of = {label: index for index, label in enumerate(labels)}
    windows = []
    for unit in _units(sentences, windowing):
        ids = [ids_of[word] for index in unit for word in words[index]]
        tags = [tag for index in unit for tag in _tags(sentences[index])]
        tag_ids = np.array([id_of.get(tag, NO_TAG) for tag in tags])
        windows += _windows(ids, tag_ids, windowing)
    vocabulary = tokenizer.vocabulary
    return _packed(windows, windowing, cls=vocabulary.cls_id, sep=vocabulary.sep_id)


def row_lengths(
    sentences: Sequence[examples.Sentence],
    num_pieces: Mapping[str, int],
    windowing: Windowing,
) -> np.ndarray:
    """Returns the places that each row would use, with [CLS] and [SEP]; int64 [N].

    Args:
        sentences: at least one.
        num_pieces: word -> how many pieces it has; 1 or more.
        windowing: how words become rows; `true_cases` are not applied.
    """
    found = []
    for unit in _units(sentences, windowing):
        words = [word for index in unit for word in sentences[index].words]
        lengths = np.array([num_pieces[word] for word in words])
        found += [end - start + 2 for start, end, _ in _spans(lengths, windowing)]
    return np.array(found, np.int64)


def words_to_tokenize(words: Sequence[str], cases: Mapping[str, str] | None):
    """Returns a sentence's words, true-cased where there are usual forms of words."""
    return list(words) if cases is None else true_casing.true_cased(words, cases)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Window:
    """A part of the pieces of a sentence or document."""

    piece_ids: np.ndarray  # Without [CLS] and [SEP].
    positions: np.ndarray  # Of the first pieces of the words that have their tag here.
    tag_ids: np.ndarray  # Of these words.


def _tags(sentence):
    return (None,) * len(sentence.words) if sentence.tags is None else sentence.tags


def _units(sentences, windowing):
    """Returns lists of the numbers of sentences that windows go over as one."""
    if not windowing.document_context:
        return [[index] for index in range(len(sentences))]
    units = {}
    for index, sentence in enumerate(sentences):
        units.setdefault(sentence.document, []).append(index)
    return list(units.values())


def _ids_of_words(sentences, tokenizer, progress):
    """Returns {word: ids of its pieces}, each word tokenized once.

    A word of which nothing is left, such as one of control characters, is [UNK]: it
    has a tag all the same.
    """
    words = list(dict.fromkeys(word for words in sentences for word in words))
    unknown = [tokenizer.vocabulary.unk_id]
    ids_of = {}
    for start in range(0, len(words), WORDS_PER_CALL):
        part = words[start : start + WORDS_PER_CALL]
        ids = packing.token_ids(tokenizer, part)
        ids_of |= {
            word: pieces or unknown for word, pieces in zip(part, ids, strict=True)
        }
        progress("tokenize", len(ids_of), len(words), unit="words")
    return ids_of


def _windows(ids, tag_ids, windowing):
    """Returns the windows of a sentence or document that have a word's tag."""
    lengths = np.array([len(pieces) for pieces in ids])
    first = np.cumsum(lengths) - lengths
    pieces = np.concatenate(ids)
    return [
        _Window(
            piece_ids=pieces[start:end],
            positions=first[is_here] - start,
            tag_ids=tag_ids[is_here],
        )
        for start, end, is_here in _spans(lengths, windowing)
    ]


def _spans(lengths, windowing):
    """Returns (start, end, which words have their tag there) of each such window."""
    first = np.cumsum(lengths) - lengths  # Of each word: the place of its first piece.
    num_pieces = int(np.sum(lengths))
    capacity = windowing.capacity
    last_start = max(num_pieces - capacity, 0)
    starts = range(0, last_start + windowing.doc_stride, windowing.doc_stride)
    best = np.full(len(lengths), -1.0)
    chosen = np.zeros(len(lengths), np.int64)
    for number, start in enumerate(starts):
        end = min(start + capacity, num_pieces)
        here = slice(*np.searchsorted(first, [start, end]))
        context = np.minimum(first[here] - start, end - 1 - first[here])
        context = context + _LENGTH_WEIGHT * (end - start)
        is_better = context > best[here]
        best[here][is_better] = context[is_better]
        chosen[here][is_better] = number
    return [
        (start, min(start + capacity, num_pieces), chosen == number)
        for number, start in enumerate(starts)
        if np.any(chosen == number)
    ]


def _packed(windows, windowing, *, cls, sep):
    shape = (len(windows), windowing.max_seq_length)
    columns = {
        name: np.zeros(shape, np.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    columns["tag_ids"] = np.full(shape, NO_TAG, np.int32)
    for row, window in enumerate(windows):
        length = len(window.piece_ids) + 2
        columns["input_ids"][row, :length] = [cls, *window.piece_ids, sep]
        columns["input_mask"][row, :length] = 1
        columns["tag_ids"][row, window.positions + 1] = window.tag_ids  # After [CLS].
    counts = [len(window.positions) for window in windows]
    return Features(
        columns=columns,
        rows=np.repeat(np.arange(len(windows)), counts),
        positions=np.concatenate([window.positions + 1 for window in windows]),
    )
