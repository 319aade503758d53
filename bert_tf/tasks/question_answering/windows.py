"""Sliding windows over contexts.

A window is [CLS] question [SEP] pieces of the context [SEP]. A context that does not
fit is read in several windows that overlap. Contexts are kept once, whatever the
number of their questions and windows: rows are put together when they are asked for.

Shape letters: W windows, B rows, S sequence.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tokenization import vocabulary as vocabulary_module

FIRST_UNIQUE_ID = 1_000_000_000  # Of the release; shows in nobody's output.
NUM_SPECIAL = 3  # [CLS], and [SEP] after the question and after the context.


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowSizes:
    """How a question and its context are cut."""

    max_seq_length: int  # The most pieces of a window, S.
    doc_stride: int  # Pieces of the context from one window's start to the next's.
    max_query_length: int  # The most pieces of a question; the rest is dropped.

    def __post_init__(self):
        room = self.max_seq_length - self.max_query_length - NUM_SPECIAL
        if room < 1:
            raise ValueError(
                f"max_seq_length ({self.max_seq_length}) has no room for a question of "
                f"{self.max_query_length} pieces (max_query_length), {NUM_SPECIAL} "
                "special ones and a piece of the context; raise it, or lower "
                "max_query_length."
            )
        if self.doc_stride < 1:
            raise ValueError(f"doc_stride must be at least 1, got {self.doc_stride}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedContext:
    """A context's word pieces, and the way back to its words."""

    context: question_answering_examples.Context
    piece_ids: list[int]  # Ids of all pieces.
    first_pieces: list[int]  # Of each word; the number of all pieces at the end.
    word_of_piece: np.ndarray  # int64 [pieces].


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows of some examples, in their order."""

    examples: Sequence[question_answering_examples.SquadExample]
    contexts: Sequence[TokenizedContext]  # Of each example; the same ones repeat.
    sizes: WindowSizes
    vocabulary: vocabulary_module.Vocabulary
    question_ids: np.ndarray  # int32: all questions' pieces, end to end.
    question_splits: np.ndarray  # int64 [examples + 1]: where in them each starts.
    context_ids: np.ndarray  # int32: all different contexts' pieces, end to end.
    example_index: np.ndarray  # int64 [W].
    context_start: np.ndarray  # int64 [W]: in `context_ids`, where its context starts.
    first_piece: np.ndarray  # int64 [W]: of its context, where the window starts.
    num_pieces: np.ndarray  # int64 [W]: of its context, how many it has.
    span_index: np.ndarray  # int64 [W]: 0 for the first window of an example.
    # int32 [W] each, in the row; 0 where the window does not hold the whole answer.
    # None where nothing is trained.
    start_positions: np.ndarray | None
    end_positions: np.ndarray | None

    def __len__(self):
        return len(self.example_index)

    @property
    def unique_ids(self) -> np.ndarray:
        """The release's numbers of the windows: int64 [W]."""
        return FIRST_UNIQUE_ID + np.arange(len(self))

    @property
    def context_offset(self) -> np.ndarray:
        """The place in each row of the first piece of the context: int64 [W]."""
        return np.diff(self.question_splits)[self.example_index] + 2

    @property
    def lengths(self) -> np.ndarray:
        """The places that each row uses, [CLS] and both [SEP] with them: int64 [W]."""
        return self.context_offset + self.num_pieces + 1

    def rows(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the columns of some windows.

        Args:
            indices: integers [B], numbers of windows.

        Returns:
            `input_ids`, `input_mask`, `segment_ids`: int32 [B, S]; where the windows
            are for training, `start_positions` and `end_positions`: int32 [B].
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
            self.question_ids[_clipped(of_question, self.question_ids)],
            self.context_ids[_clipped(of_context, self.context_ids)],
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
        num_pieces: pieces of the context.
        room: the most of them that a window holds.
        doc_stride: from one window's start to the next's; never more than `room`.

    Example:
        >>> window_spans(10, 5, 3)
        [(0, 5), (3, 5), (6, 4)]
    """
    step = min(room, doc_stride)
    # The first window that reaches the end is the last one.
    num_windows = 1 + max(0, -(-(num_pieces - room) // step))
    return [
        (start, min(room, num_pieces - start))
        for start in range(0, num_windows * step, step)
    ]


def is_max_context(windows: Windows, window: np.ndarray, places: np.ndarray):
    """Returns whether no other window shows a piece in a better surrounding.

    Of the windows that hold a piece, the one counts in which it has the most pieces on
    its poorer side; a long window wins over a short one by a little, then the first.

    Args:
        windows: `Windows`.
        window: integers [N], numbers of windows.
        places: integers [N], pieces of those windows' contexts, within the windows.

    Returns:
        bool [N].

    Source: _check_is_max_context of run_squad.py, 2018.
    """
    is_best = np.ones(len(window), bool)
    own = _surrounding(windows, window, places)
    num_spans = np.bincount(windows.example_index)[windows.example_index[window]]
    most = int(num_spans.max()) if len(window) else 0
    for span in range(most):
        other = window - windows.span_index[window] + span
        exists = span < num_spans
        other = np.where(exists, other, window)
        first = windows.first_piece[other]
        holds = (first <= places) & (places < first + windows.num_pieces[other])
        score = _surrounding(windows, other, places)
        is_earlier = span < windows.span_index[window]
        is_better = (score > own) | ((score == own) & is_earlier)
        is_best &= ~(exists & holds & is_better)
    return is_best


def _surrounding(windows, window, places):
    first, count = windows.first_piece[window], windows.num_pieces[window]
    poorer = np.minimum(places - first, first + count - 1 - places)
    return poorer + 0.01 * count


def _clipped(places, values):
    """Places that exist; what stands at others is not looked at."""
    return np.clip(places, 0, max(0, len(values) - 1))
