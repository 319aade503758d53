"""Divides long contexts into overlapping windows.

A row is [CLS] question [SEP] pieces of the context [SEP], with segment 1 from the
context on (arXiv:1810.04805, section 4.2). BERT has 512 position embeddings, and many
contexts are longer. So a context becomes several windows, each starting `doc_stride`
pieces after the previous one. A stride shorter than a window makes them overlap: an
answer that one window cuts off is complete in another, and most pieces have text on
both sides in at least one window.

Each context is stored once, regardless of its number of questions and windows. Rows are
assembled on demand.

Shape letters: W windows, B rows, S sequence, N pairs of a window and a piece.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.data import packing
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tokenization import vocabulary as vocabulary_module

FIRST_UNIQUE_ID = 1_000_000_000  # As in run_squad.py of 2018.
NUM_SPECIAL = question_answering_options.NUM_SPECIAL


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowSizes:
    """The lengths that determine how contexts are divided into windows."""

    max_seq_length: int  # Maximum number of pieces in a row, S.
    doc_stride: int  # Pieces of the context between the starts of two windows.
    max_query_length: int  # Maximum number of pieces of a question; it is truncated.

    def __post_init__(self):
        room = self.max_seq_length - self.max_query_length - NUM_SPECIAL
        if room < 1:
            raise ValueError(
                f"max_seq_length={self.max_seq_length} is too short for a question of "
                f"{self.max_query_length} pieces (max_query_length), {NUM_SPECIAL} "
                "special pieces and at least one piece of the context; increase it, or "
                "decrease max_query_length."
            )
        if self.doc_stride < 1:
            raise ValueError(f"doc_stride must be at least 1, got {self.doc_stride}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedContext:
    """The word pieces of a context and the word that each of them belongs to."""

    context: question_answering_examples.Context
    piece_ids: list[int]
    first_pieces: list[int]  # Index of each word's first piece; last, their number.
    word_of_piece: np.ndarray  # int64 [pieces], index of each piece's word.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows of examples, in the order of the examples."""

    examples: Sequence[question_answering_examples.SquadExample]
    contexts: Sequence[TokenizedContext]  # One per example; questions share them.
    sizes: WindowSizes
    vocabulary: vocabulary_module.Vocabulary
    question_ids: np.ndarray  # int32: the pieces of all questions, concatenated.
    question_splits: np.ndarray  # int64 [examples + 1]: start of each in question_ids.
    context_ids: np.ndarray  # int32: the pieces of all unique contexts, concatenated.
    example_index: np.ndarray  # int64 [W].
    context_start: np.ndarray  # int64 [W]: start of the context in `context_ids`.
    first_piece: np.ndarray  # int64 [W]: the window's first piece, in its context.
    num_pieces: np.ndarray  # int64 [W]: pieces of the context in the window.
    span_index: np.ndarray  # int64 [W]: 0 for the first window of an example.
    # int32 [W], positions in the row. A window that does not contain the whole answer
    # has 0 for both, the position of [CLS]: "no answer here" (section 4.3 of the
    # paper). None for prediction.
    start_positions: np.ndarray | None
    end_positions: np.ndarray | None

    def __len__(self) -> int:
        return len(self.example_index)

    @property
    def unique_ids(self) -> np.ndarray:
        """The ids that the release gives to windows: int64 [W]."""
        return FIRST_UNIQUE_ID + np.arange(len(self))

    @property
    def context_offset(self) -> np.ndarray:
        """The position of the context's first piece in each row: int64 [W]."""
        return np.diff(self.question_splits)[self.example_index] + 2

    @property
    def lengths(self) -> np.ndarray:
        """The number of pieces in each row without padding: int64 [W]."""
        return self.context_offset + self.num_pieces + 1

    @property
    def example_lengths(self) -> np.ndarray:
        """The number of pieces of each example in one row: int64 [examples]."""
        ends = np.zeros(len(self.examples), np.int64)  # Of the contexts.
        np.maximum.at(ends, self.example_index, self.first_piece + self.num_pieces)
        return np.diff(self.question_splits) + ends + 3  # [CLS] and two [SEP].

    def rows(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the features of windows.

        Args:
            indices: integers [B], indices of windows.

        Returns:
            `input_ids`, `input_mask`, `segment_ids`: int32 [B, S]. In training also
            `start_positions` and `end_positions`: int32 [B].
        """
        places = np.arange(self.sizes.max_seq_length)[np.newaxis]  # [1, S]
        offset = self.context_offset[indices][:, np.newaxis]  # [B, 1]
        end = offset + self.num_pieces[indices][:, np.newaxis]
        question = self.question_splits[self.example_index[indices]]
        first = self.context_start[indices] + self.first_piece[indices]
        of_question = question[:, np.newaxis] + places - 1  # [B, S]
        of_context = first[:, np.newaxis] + places - offset
        input_ids = np.where(
            places < offset,
            _taken(self.question_ids, of_question),
            _taken(self.context_ids, of_context),
        )
        input_ids[(places == offset - 1) | (places == end)] = self.vocabulary.sep_id
        input_ids[:, 0] = self.vocabulary.cls_id
        is_used = places <= end
        columns = {
            "input_ids": np.where(is_used, input_ids, 0).astype(np.int32),
            "input_mask": is_used.astype(np.int32),
            "segment_ids": (is_used & (places >= offset)).astype(np.int32),
        }
        if self.start_positions is not None and self.end_positions is not None:
            columns["start_positions"] = self.start_positions[indices]
            columns["end_positions"] = self.end_positions[indices]
        return columns


def window_spans(num_pieces: int, room: int, doc_stride: int) -> list[tuple[int, int]]:
    """Returns (first piece, number of pieces) of each window over a context.

    Args:
        num_pieces: number of pieces in the context.
        room: maximum number of these pieces in a window.
        doc_stride: pieces between the starts of two windows; at most `room` is used.

    Example:
        >>> window_spans(10, 5, 3)
        [(0, 5), (3, 5), (6, 4)]
    """
    return [
        (start, stop - start)
        for start, stop in packing.window_spans(num_pieces, room, doc_stride)
    ]


def is_max_context(
    windows: Windows, window: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """Returns whether a window is the one that shows a piece with the most context.

    A piece of the context occurs in several windows, and each of them scores it. The
    score counts from one window only: the one in which the smaller of the numbers of
    pieces to its left and to its right is largest. At the edge of a window the encoder
    has seen the text on one side only, so the scores there are less reliable. Ties go
    to the longer window, then to the first one.

    Args:
        windows: all windows.
        window: integers [N], indices of windows.
        places: integers [N], indices of pieces in the contexts of these windows. Each
            piece is inside its window.

    Returns:
        bool [N].

    Source: _check_is_max_context of run_squad.py, 2018.
    """
    is_best = np.ones(len(window), bool)
    own = _context_score(windows, window, places)
    num_spans = np.bincount(windows.example_index)[windows.example_index[window]]
    most = int(num_spans.max()) if len(window) else 0
    for span in range(most):
        other = window - windows.span_index[window] + span
        exists = span < num_spans
        other = np.where(exists, other, window)
        first = windows.first_piece[other]
        holds = (first <= places) & (places < first + windows.num_pieces[other])
        score = _context_score(windows, other, places)
        is_earlier = span < windows.span_index[window]
        is_better = (score > own) | ((score == own) & is_earlier)
        is_best &= ~(exists & holds & is_better)
    return is_best


def _context_score(windows, window, places):
    first, count = windows.first_piece[window], windows.num_pieces[window]
    shorter_side = np.minimum(places - first, first + count - 1 - places)
    return shorter_side + packing.CONTEXT_LENGTH_WEIGHT * count


def _taken(values, places):
    """Returns the values at indices; those at indices outside are never used."""
    if not len(values):  # No question, or no context, has a word piece.
        return np.zeros_like(places)
    return values[np.clip(places, 0, len(values) - 1)]
