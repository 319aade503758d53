"""Makes the encoder's rows from texts: truncate or divide, add [CLS] and [SEP], pad.

Shape letters: B batch, S sequence.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np

# What the encoder reads of each row: int32 arrays [B, S].
ENCODER_COLUMNS = ("input_ids", "input_mask", "segment_ids")
# A piece that appears in several overlapping windows belongs to the one with most
# context around it. This share of a window's length decides between windows with equal
# context (_check_is_max_context of run_squad.py, 2018).
CONTEXT_LENGTH_WEIGHT = 0.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedPair:
    """One sequence: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""

    pieces: list  # Word pieces or ids, as they were given.
    segment_ids: list[int]  # 0 up to and including the first [SEP], then 1.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rows:
    """The features of N examples, and how long their texts were."""

    columns: dict[str, np.ndarray]  # [N, ...] each: the encoder's and those of labels.
    # int64 [N]: pieces of each example before truncation, without special tokens.
    lengths: np.ndarray


def truncate_pair(
    tokens_a: Sequence, tokens_b: Sequence, max_tokens: int
) -> tuple[list, list]:
    """Returns both segments cut from the end, the longer one first.

    The longer segment gives way first because each of its pieces carries less of its
    meaning than one of a short segment. Source: run_classifier.py, 2018.

    Args:
        tokens_a: word pieces, or their ids.
        tokens_b: word pieces, or their ids.
        max_tokens: maximum number of pieces of both together.

    Returns:
        Two new lists.

    Raises:
        ValueError: `max_tokens` is negative.
    """
    if max_tokens < 0:
        raise ValueError(f"max_tokens must not be negative, got {max_tokens}.")
    keep_a, keep_b = len(tokens_a), len(tokens_b)
    if keep_a + keep_b > max_tokens:
        # The result of removing one piece at a time, from B if both are equally long.
        if min(keep_a, keep_b) > max_tokens // 2:
            keep_a, keep_b = max_tokens - max_tokens // 2, max_tokens // 2
        elif keep_a > keep_b:
            keep_a = max_tokens - keep_b
        else:
            keep_b = max_tokens - keep_a
    return list(tokens_a[:keep_a]), list(tokens_b[:keep_b])


def truncate_longer(
    tokens_a: Sequence, tokens_b: Sequence, max_tokens: int
) -> tuple[list, list]:
    """Returns both segments cut from the end, as in the tokenizers library.

    It differs from `truncate_pair` if both are cut to half of an odd maximum: the
    longer segment keeps the additional piece, or B if both are equally long.

    Args:
        tokens_a: word pieces, or their ids.
        tokens_b: word pieces, or their ids.
        max_tokens: maximum number of pieces of both together.

    Source: "longest_first" of Hugging Face's fast tokenizers.
    """
    if len(tokens_a) > len(tokens_b):
        return truncate_pair(tokens_a, tokens_b, max_tokens)
    kept_b, kept_a = truncate_pair(tokens_b, tokens_a, max_tokens)
    return kept_a, kept_b


# One of the two functions above.
TruncatePair = Callable[[Sequence, Sequence, int], tuple[list, list]]


def pack_pair(
    tokens_a: Sequence,
    tokens_b: Sequence | None = None,
    *,
    max_seq_length: int,
    cls: str | int = "[CLS]",
    sep: str | int = "[SEP]",
    truncate_pair: TruncatePair = truncate_pair,
) -> PackedPair:
    """Returns [CLS] A [SEP] or [CLS] A [SEP] B [SEP], truncated to fit.

    Args:
        tokens_a: word pieces, or their ids.
        tokens_b: pieces or ids of the second segment, or None.
        max_seq_length: maximum length of the result.
        cls: piece or id at the start.
        sep: piece or id after each segment.
        truncate_pair: shortens the pair; `truncate_pair` or `truncate_longer`.

    Raises:
        ValueError: `max_seq_length` has no room for [CLS] and [SEP].

    Source: convert_single_example of run_classifier.py, 2018.
    """
    num_special = 2 if tokens_b is None else 3
    if max_seq_length < num_special:
        raise ValueError(
            f"max_seq_length: expected at least {num_special}, got {max_seq_length}."
        )
    tokens_a, rest = truncate_pair(
        tokens_a, () if tokens_b is None else tokens_b, max_seq_length - num_special
    )
    pieces = [cls, *tokens_a, sep]
    segment_ids = [0] * len(pieces)
    if tokens_b is not None:
        pieces += [*rest, sep]
        segment_ids += [1] * (len(rest) + 1)
    return PackedPair(pieces=pieces, segment_ids=segment_ids)


def pack(
    tokenizer: Any,
    texts: Sequence[str],
    *,
    max_seq_length: int,
    texts_b: Sequence[str] | None = None,
    lengths: list[int] | None = None,
    truncate_pair: TruncatePair = truncate_pair,
) -> dict[str, np.ndarray]:
    """Returns the encoder's features of some texts, or pairs of texts.

    Args:
        tokenizer: a `FullTokenizer` or an `InGraphTokenizer`.
        texts: B texts.
        max_seq_length: length of the rows, S; longer texts are cut at the end.
        texts_b: B second segments, or None.
        lengths: a list that collects the number of pieces of each text or pair before
            it is cut, without special tokens.
        truncate_pair: see `pack_pair`.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [B, S].

    Raises:
        ValueError: `texts` is one string, or `texts_b` has a different length.

    Example:
        >>> pack(tokenizer, ["The cat sat."], max_seq_length=8)["input_ids"]
        array([[ 101, 1996, 4937, 2938, 1012,  102,    0,    0]], dtype=int32)
    """
    if isinstance(texts, str) or isinstance(texts_b, str):
        raise ValueError("Expected a list of texts, got one string.")
    if texts_b is not None and len(texts_b) != len(texts):
        raise ValueError(
            f"Expected as many texts_b as texts ({len(texts)}), got {len(texts_b)}."
        )
    ids_a = token_ids(tokenizer, texts)
    ids_b: Sequence[list[int] | None] = [None] * len(texts)
    if texts_b is not None:
        ids_b = token_ids(tokenizer, texts_b)
    if lengths is not None:
        lengths += [len(a) + len(b or ()) for a, b in zip(ids_a, ids_b, strict=True)]
    vocabulary = tokenizer.vocabulary
    return pack_ids(
        vocabulary, ids_a, max_seq_length, ids_b, truncate_pair=truncate_pair
    )


def pack_ids(
    vocabulary: Any,
    ids_a: Sequence[Sequence[int]],
    max_seq_length: int,
    ids_b: Sequence[Sequence[int] | None] | None = None,
    *,
    truncate_pair: TruncatePair = truncate_pair,
) -> dict[str, np.ndarray]:
    """Returns `pack` of texts that are ids of word pieces already.

    Args:
        vocabulary: provides [CLS] and [SEP].
        ids_a: ids of B texts.
        max_seq_length: length of the rows, S.
        ids_b: ids of B second segments, or None.
        truncate_pair: see `pack_pair`.
    """
    rows = [
        pack_pair(
            a,
            b,
            max_seq_length=max_seq_length,
            cls=vocabulary.cls_id,
            sep=vocabulary.sep_id,
            truncate_pair=truncate_pair,
        )
        for a, b in zip(ids_a, ids_b or [None] * len(ids_a), strict=True)
    ]
    return padded_features(rows, max_seq_length)


def padded_features(
    rows: Sequence[PackedPair], max_seq_length: int
) -> dict[str, np.ndarray]:
    """Returns `input_ids`, `input_mask`, `segment_ids`: int32 [B, S].

    Args:
        rows: B sequences of ids.
        max_seq_length: length of the rows, S.
    """
    features = {
        name: np.zeros((len(rows), max_seq_length), np.int32)
        for name in ENCODER_COLUMNS
    }
    for index, row in enumerate(rows):
        length = len(row.pieces)
        features["input_ids"][index, :length] = row.pieces
        features["input_mask"][index, :length] = 1
        features["segment_ids"][index, :length] = row.segment_ids
    return features


def token_ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Returns the ids of each text's word pieces.

    Args:
        tokenizer: a `FullTokenizer` or an `InGraphTokenizer`.
        texts: the texts.
    """
    if len(texts) == 0:
        return []
    if hasattr(tokenizer, "convert_tokens_to_ids"):
        return [
            tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) for text in texts
        ]
    return tokenizer.token_ids(list(texts))


def window_spans(num_pieces: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Returns the start and the stop of each window over a long text.

    Each window starts `stride` pieces after the previous one. A stride shorter than a
    window makes them overlap, so that most pieces have text on both sides in at least
    one window. At the edge of a window the encoder sees text on one side only.

    Args:
        num_pieces: number of pieces in the text.
        room: maximum number of pieces in a window.
        stride: pieces between the starts of two windows; at most `room` is used.

    Example:
        >>> window_spans(10, 5, 3)
        [(0, 5), (3, 8), (6, 10)]

    Source: doc_spans of run_squad.py, 2018.
    """
    step = min(room, stride)
    # The first window that reaches the end of the text is the last one.
    num_windows = 1 + max(0, -(-(num_pieces - room) // step))
    return [
        (start, min(start + room, num_pieces))
        for start in range(0, num_windows * step, step)
    ]


def most_context(windows: Sequence[tuple[int, int]], pieces: np.ndarray) -> np.ndarray:
    """Returns the window in which each piece has the most context, int64 [N].

    A piece's context is the smaller of the numbers of pieces to its left and to its
    right. Among equals the longer window wins, then the first one.

    Args:
        windows: starts and stops, in order; see `window_spans`.
        pieces: integers [N] in ascending order, indices of pieces of the text. Each is
            in at least one window.

    Source: _check_is_max_context of run_squad.py, 2018.
    """
    best = np.full(len(pieces), -1.0)
    chosen = np.zeros(len(pieces), np.int64)
    for number, (start, stop) in enumerate(windows):
        inside = slice(*np.searchsorted(pieces, [start, stop]))
        places = pieces[inside]
        context = np.minimum(places - start, stop - 1 - places)
        score = context + CONTEXT_LENGTH_WEIGHT * (stop - start)
        is_better = score > best[inside]
        best[inside][is_better] = score[is_better]
        chosen[inside][is_better] = number
    return chosen
