"""Turns the logits of windows into candidate spans, ranked by score.

The head has one vector for starts and one for ends. The score of a span is the dot
product of the start vector with its first piece plus that of the end vector with its
last piece, and the best span with end >= start wins (arXiv:1810.04805, section 4.2).
The two choices are independent given the encoder's output. That costs 2 H weights and
S scores per vector instead of S * S. But the best start and the best end need not form
a span, so several of each are combined and impossible pairs are removed.

Shape letters: W windows, S sequence, B windows in a call, K best starts (or ends) of a
window, N spans.
"""

from typing import NamedTuple

import numpy as np

from bert_tf.modeling import numerics
from bert_tf.tasks.question_answering import windows as question_answering_windows

# Windows whose K x K pairs are in memory at a time.
WINDOWS_PER_CALL = 128


class Spans(NamedTuple):
    """Spans of pieces: sorted by example, those of an example by falling score."""

    example: np.ndarray  # int64 [N], index of the example.
    first_piece: np.ndarray  # int64 [N], index in the example's context.
    last_piece: np.ndarray  # int64 [N]
    start_logit: np.ndarray  # float64 [N]
    end_logit: np.ndarray  # float64 [N]


def without_padding(
    windows: question_answering_windows.Windows, logits: np.ndarray
) -> np.ndarray:
    """Returns the logits with padding masked, so that it cannot be chosen.

    This makes the result independent of the length to which a batch was padded. The
    release does not mask padding, which can therefore take one of the K best positions
    although no answer can start there.

    Args:
        windows: the windows that were scored.
        logits: float32 [W, S].

    Returns:
        float32 [W, S].
    """
    places = np.arange(logits.shape[1])[np.newaxis]
    is_used = places < windows.lengths[:, np.newaxis]
    return np.where(is_used, logits, np.float32(numerics.ATTENTION_MASK_BIAS))


def allowed_spans(
    windows: question_answering_windows.Windows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    *,
    n_best_size: int,
    max_answer_length: int,
) -> Spans:
    """Returns the valid spans from the best starts to the best ends of each window.

    A span is valid if it is inside the context, its end is not before its start, it
    has at most `max_answer_length` pieces, and no other window shows its first piece
    with more context (see `windows.is_max_context`). Nothing in the model links the end
    to the start: without a limit, a start in one sentence and an end three sentences
    later can score higher than either sentence's answer.

    Args:
        windows: the windows that were scored.
        start_logits: float32 [W, S].
        end_logits: float32 [W, S].
        n_best_size: number of starts, and of ends, to try per window, K.
        max_answer_length: maximum number of pieces.

    Source: the first half of write_predictions of run_squad.py, 2018.
    """
    parts = []
    for begin in range(0, len(windows), WINDOWS_PER_CALL):
        numbers = np.arange(begin, min(begin + WINDOWS_PER_CALL, len(windows)))
        starts = _best_places(start_logits[numbers], n_best_size)  # [B, K]
        ends = _best_places(end_logits[numbers], n_best_size)
        firsts = _pieces(windows, numbers, starts)
        lasts = _pieces(windows, numbers, ends)
        may_start = _in_window(windows, numbers, firsts)
        window = np.broadcast_to(numbers[:, np.newaxis], firsts.shape)
        may_start[may_start] = question_answering_windows.is_max_context(
            windows, window[may_start], firsts[may_start]
        )
        may_end = _in_window(windows, numbers, lasts)
        lengths = lasts[:, np.newaxis, :] - firsts[:, :, np.newaxis] + 1  # [B, K, K]
        allowed = may_start[:, :, np.newaxis] & may_end[:, np.newaxis, :]
        allowed &= (lengths > 0) & (lengths <= max_answer_length)
        # By window, start and end, as in the release.
        row, start, end = np.nonzero(allowed)
        parts.append(
            (
                windows.example_index[numbers[row]],
                firsts[row, start],
                lasts[row, end],
                start_logits[numbers[row], starts[row, start]].astype(np.float64),
                end_logits[numbers[row], ends[row, end]].astype(np.float64),
            )
        )
    found = Spans(*map(np.concatenate, zip(*parts, strict=True)))
    scores = found.start_logit + found.end_logit
    # The sort is stable: equal scores keep the order in which the release finds them.
    order = np.lexsort((-scores, found.example))
    return Spans(*(column[order] for column in found))


def null_windows(
    windows: question_answering_windows.Windows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
) -> np.ndarray:
    """Returns for each example the window with the lowest no-answer score.

    The score of "no answer" is that of the span from [CLS] to [CLS] (section 4.3 of the
    paper). Training teaches every window without the answer to give [CLS] a high score,
    so one high score says nothing about the others. The whole context has no answer
    only if all windows say so, and the lowest score decides.

    Args:
        windows: the windows that were scored.
        start_logits: float32 [W, S].
        end_logits: float32 [W, S].

    Returns:
        int64 [examples], indices of windows.
    """
    scores = start_logits[:, 0].astype(np.float64) + end_logits[:, 0]
    order = np.lexsort((scores, windows.example_index))
    first = np.searchsorted(
        windows.example_index[order], np.arange(len(windows.examples))
    )
    return order[first]


def _best_places(logits, count):
    """Returns the positions [B, K] of the highest logits; ties keep their order.

    NaN comes last, as in NumPy's sorting.
    """
    # Sorting integers is several times as fast as a stable sort of floats. The bits of
    # positive floats are in the order of their values, those of negative floats in the
    # opposite order. The position in the lower half decides about ties.
    negative = 0.0 - logits.astype(np.float32)
    negative[np.isnan(negative)] = np.inf
    bits = negative.view(np.int32)
    ordered = bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))
    keys = (ordered.astype(np.int64) << 32) | np.arange(logits.shape[1])
    keys.partition(min(count, keys.shape[1]) - 1, axis=1)
    return np.sort(keys[:, :count], axis=1) & 0xFFFFFFFF


def _pieces(windows, numbers, places):
    """Returns the index in the context of the pieces at positions [B, K] of rows."""
    offset = windows.context_offset[numbers] - windows.first_piece[numbers]
    return places - offset[:, np.newaxis]


def _in_window(windows, numbers, pieces):
    """Returns whether windows contain pieces of their contexts: bool [B, K]."""
    first = windows.first_piece[numbers][:, np.newaxis]
    count = windows.num_pieces[numbers][:, np.newaxis]
    return (pieces >= first) & (pieces < first + count)
