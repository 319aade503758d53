"""Converts sentences to rows of word pieces, and outputs for pieces back to words.

Shape letters: N rows, S sequence, W words, C classes.
"""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import words as words_module

# The id in `tag_ids` of a piece without a tag; the loss ignores it.
NO_TAG = -1
# Words per call of the tokenizer, enough to amortize the cost of a call.
WORDS_PER_CALL = 16384


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windowing:
    """The settings for converting words to rows."""

    max_seq_length: int  # S, including [CLS] and [SEP].
    doc_stride: int  # Pieces between the starts of two windows.
    # Windows cover documents, not sentences: the encoder sees the neighboring
    # sentences, "the maximal document context" of section 5.3 of the paper.
    document_context: bool = False
    # The usual forms of words, for sentences in capitals. None: no true-casing.
    true_cases: Mapping[str, str] | None = None

    def __post_init__(self):
        if not 1 <= self.doc_stride <= self.capacity:
            raise ValueError(
                f"doc_stride: expected 1 to max_seq_length - 2 ({self.capacity}), got "
                f"{self.doc_stride}; a larger stride would skip words."
            )

    @property
    def capacity(self) -> int:
        """The maximum number of pieces in a window, without [CLS] and [SEP]."""
        return self.max_seq_length - 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Features:
    """Rows of pieces and the position of each word's tag.

    Every word has its tag at one piece of one row. Words are in the order of the
    sentences.
    """

    columns: Mapping[str, np.ndarray]  # int32 [N, S] each, including `tag_ids`.
    # int64 [W], the row of each word; in ascending order, except for `selected` rows.
    rows: np.ndarray
    positions: np.ndarray  # int64 [W], the position of its first piece in the row.
    # Pieces of each sentence (with `document_context` document) before it is divided
    # into windows, with [CLS] and [SEP]. None for a part of the features.
    lengths: np.ndarray | None = None

    def first_pieces(self, values: np.ndarray) -> np.ndarray:
        """Returns the values [W, ...] of [N, S, ...] at the words' first pieces."""
        return values[self.rows, self.positions]

    def selected(self, numbers: Sequence[int]) -> tuple[np.ndarray, "Features"]:
        """Returns which words are in the given rows, bool [W], and these rows."""
        place = np.full(len(self.columns["input_ids"]), -1)
        place[numbers] = np.arange(len(numbers))
        rows = place[self.rows]
        is_here = rows >= 0
        return is_here, Features(
            columns={name: c[numbers] for name, c in self.columns.items()},
            rows=rows[is_here],
            positions=self.positions[is_here],
        )

    def parts(self, num_rows: int) -> Iterator["Features"]:
        """Yields the features in parts of `num_rows` rows, each with its words."""
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
    tokenizer: Any,
    windowing: Windowing,
) -> Features:
    """Returns the features of sentences and the positions of their words.

    Words are tokenized one by one, and the first piece of a word carries its tag
    (arXiv:1810.04805, section 5.3). The other pieces have `NO_TAG`: they take part in
    attention, but in neither loss nor prediction. So every word counts once, however
    many pieces it has, and its pieces cannot get contradicting tags.

    A sentence (with `document_context` a document) that is longer than a row is divided
    into overlapping windows. Each word has its tag in only one of them: the one in
    which the smaller of the numbers of pieces before and after it is largest, since
    the encoder sees little context at the edge of a window.

    Args:
        sentences: at least one sentence; W is the number of their words.
        labels: the tags, in the order of the model's outputs. Words without a tag, or
            with another one, have `NO_TAG` in `tag_ids`.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        windowing: the settings.

    Source: section 5.3 of the paper, and "Tokenization" in the README of 2018.
    """
    words: list[Sequence[str]] = [sentence.words for sentence in sentences]
    if windowing.true_cases is not None:
        words = [words_module.true_cased(one, windowing.true_cases) for one in words]
    piece_ids = _piece_ids(words, tokenizer)
    label_ids = {label: index for index, label in enumerate(labels)}
    cls, sep = tokenizer.vocabulary.cls_id, tokenizer.vocabulary.sep_id
    input_ids: list[np.ndarray] = []  # Of each row, without padding.
    rows, positions, tag_ids, lengths = [], [], [], []
    for unit in _units(sentences, windowing):
        ids = [piece_ids[word] for index in unit for word in words[index]]
        pieces = np.concatenate(ids)
        sizes = np.array([len(one) for one in ids])
        first = np.cumsum(sizes) - sizes  # The index of each word's first piece.
        lengths.append(len(pieces) + 2)
        spans = packing.window_spans(
            len(pieces), windowing.capacity, windowing.doc_stride
        )
        chosen = packing.most_context(spans, first)
        for number, (start, end) in enumerate(spans):
            here = first[chosen == number]
            if len(here):
                rows.append(np.full(len(here), len(input_ids)))
                positions.append(here - start + 1)  # After [CLS].
                input_ids.append(np.array([cls, *pieces[start:end], sep]))
        tags = [tag for index in unit for tag in _tags(sentences[index])]
        tag_ids += [label_ids.get(tag, NO_TAG) for tag in tags]
    shape = (len(input_ids), windowing.max_seq_length)
    columns = {name: np.zeros(shape, np.int32) for name in packing.ENCODER_COLUMNS}
    for row, row_ids in enumerate(input_ids):
        columns["input_ids"][row, : len(row_ids)] = row_ids
        columns["input_mask"][row, : len(row_ids)] = 1
    columns["tag_ids"] = np.full(shape, NO_TAG, np.int32)
    words_rows, words_positions = np.concatenate(rows), np.concatenate(positions)
    columns["tag_ids"][words_rows, words_positions] = tag_ids
    return Features(
        columns=columns,
        rows=words_rows,
        positions=words_positions,
        lengths=np.array(lengths),
    )


def _tags(sentence):
    return (None,) * len(sentence.words) if sentence.tags is None else sentence.tags


def _units(sentences, windowing):
    """Returns lists of sentence indices; windows are cut from each list as a whole."""
    if not windowing.document_context:
        return [[index] for index in range(len(sentences))]
    units: dict[int, list[int]] = {}
    for index, sentence in enumerate(sentences):
        units.setdefault(sentence.document, []).append(index)
    return list(units.values())


def _piece_ids(sentences, tokenizer):
    """Returns the ids of the pieces of each unique word.

    A word without pieces, such as one of control characters, becomes [UNK], since it
    still needs a piece for its tag.
    """
    words = list(dict.fromkeys(word for words in sentences for word in words))
    unknown = [tokenizer.vocabulary.unk_id]
    piece_ids: dict[str, list[int]] = {}
    for start in range(0, len(words), WORDS_PER_CALL):
        part = words[start : start + WORDS_PER_CALL]
        ids = packing.token_ids(tokenizer, part)
        piece_ids |= {
            word: pieces or unknown for word, pieces in zip(part, ids, strict=True)
        }
        progress_module.report("tokenize", len(piece_ids), len(words), unit="words")
    return piece_ids
