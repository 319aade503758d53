"""The windows' scores to spans of pieces that may be the answer, the best first.

Shape letters: W windows, S sequence, K the best starts (or ends) of a window, N spans.
"""

import dataclasses

import numpy as np

from bert_tf.tasks.question_answering import windows as question_answering_windows

# The K × K pairs of so many windows are looked at together.
WINDOWS_PER_CALL = 1024
# The score of padding, where no answer is: what the attention mask adds in 2018.
PADDING_LOGIT = -10000.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spans:
    """Spans of pieces, those of one example together, their best one first."""

    example: np.ndarray  # int64 [N].
    first_piece: np.ndarray  # int64 [N], of the example's context.
    last_piece: np.ndarray  # int64 [N]
    start_logit: np.ndarray  # float64 [N]
    end_logit: np.ndarray  # float64 [N]

    def splits(self, num_examples: int) -> np.ndarray:
        """Returns where each example's spans start, then the end: int64 [E + 1]."""
        return np.searchsorted(self.example, np.arange(num_examples + 1))

    def part(self, start: int, end: int) -> list[tuple[int, int, float, float]]:
        """Returns (first piece, last piece, start logit, end logit) of some spans."""
        columns = (self.first_piece, self.last_piece, self.start_logit, self.end_logit)
        return list(
            zip(*(column[start:end].tolist() for column in columns), strict=True)
        )


def without_padding(
    windows: question_answering_windows.Windows, logits: np.ndarray
) -> np.ndarray:
    """Returns scores float32 [W, S] in which padding cannot be chosen.

    So it does not matter how far a batch was padded. The release lets padding have its
    score: then it may take one of the K best places, from which no answer comes.

    Args:
        windows: `Windows`.
        logits: float32 [W, S].
    """
    places = np.arange(logits.shape[1])[np.newaxis]
    is_used = places < windows.lengths[:, np.newaxis]
    return np.where(is_used, logits, np.float32(PADDING_LOGIT))


def allowed_spans(
    windows: question_answering_windows.Windows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    *,
    n_best_size: int,
    max_answer_length: int,
) -> Spans:
    """Returns the spans between the best starts and the best ends of each window.

    A span lies in the context, ends no sooner than it starts, has at most
    `max_answer_length` pieces, and starts with a piece of which no other window shows
    more surroundings.

    Args:
        windows: `Windows`.
        start_logits: float32 [W, S].
        end_logits: float32 [W, S].
        n_best_size: starts, and ends, that are tried in each window, K.
        max_answer_length: in pieces.

    Source: the first half of write_predictions of run_squad.py, 2018. Among spans of
    the same score the one that the release meets first is first.
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
        row, start, end = np.nonzero(
            allowed
        )  # Starts before ends: the release's order.
        parts.append(
            (
                windows.example_index[numbers[row]],
                firsts[row, start],
                lasts[row, end],
                start_logits[numbers[row], starts[row, start]].astype(np.float64),
                end_logits[numbers[row], ends[row, end]].astype(np.float64),
            )
        )
    example, first, last, start_logit, end_logit = map(
        np.concatenate, zip(*parts, strict=True)
    )
    # Stable, so that the release's order decides between equals.
    order = np.lexsort((-(start_logit + end_logit), example))
    return Spans(
        example=example[order],
        first_piece=first[order],
        last_piece=last[order],
        start_logit=start_logit[order],
        end_logit=end_logit[order],
    )


def null_windows(
    windows: question_answering_windows.Windows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
) -> np.ndarray:
    """Returns the window of each example whose [CLS] has the lowest score.

    Args:
        windows: `Windows`.
        start_logits: float32 [W, S].
        end_logits: float32 [W, S].

    Returns:
        int64 [examples].
    """
    scores = start_logits[:, 0].astype(np.float64) + end_logits[:, 0]
    order = np.lexsort((scores, windows.example_index))
    first = np.searchsorted(
        windows.example_index[order], np.arange(len(windows.examples))
    )
    return order[first]


def _best_places(logits, count):
    """Returns the places [B, K] of the highest scores, among equals the first first."""
    return np.argsort(-logits, axis=1, kind="stable")[:, :count]


def _pieces(windows, numbers, places):
    """Returns which pieces of their contexts stand at some places [B, K] of rows."""
    offset = windows.context_offset[numbers] - windows.first_piece[numbers]
    return places - offset[:, np.newaxis]


def _in_window(windows, numbers, pieces):
    first = windows.first_piece[numbers][:, np.newaxis]
    count = windows.num_pieces[numbers][:, np.newaxis]
    return (pieces >= first) & (pieces < first + count)
