"""Packs texts into rows of word pieces, and long texts into several windows.

Shape letters: S sequence.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.data import packing


def pack(
    tokenizer: Any,
    texts: Sequence[str],
    *,
    texts_b: Sequence[str] | None = None,
    max_seq_length: int,
    doc_stride: int = 0,
    truncate_pair: packing.TruncatePair = packing.truncate_pair,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns the encoder's features, and the number of the text of each row.

    Without `doc_stride`, each text has one row, and long texts are truncated. Otherwise
    a long text has a window every `doc_stride` word pieces, until its end is covered.
    The windows of a pair cover the longer text. Each of them contains the shorter text,
    truncated to half of the row.

    Args:
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        texts: N texts.
        texts_b: N second texts, or None.
        max_seq_length: length of the rows, S.
        doc_stride: word pieces between the starts of windows. 0: no windows.
        truncate_pair: without windows, truncates pairs that are too long.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [rows, S]. And int64 [rows], the
        index of the text of each row, in ascending order.
    """
    if not doc_stride:
        packed = packing.pack(
            tokenizer,
            texts,
            texts_b=texts_b,
            max_seq_length=max_seq_length,
            truncate_pair=truncate_pair,
        )
        return packed, np.arange(len(texts))
    ids_a = packing.token_ids(tokenizer, texts)
    ids_b: list[list[int] | None] = [None] * len(texts)
    if texts_b is not None:
        ids_b = list(packing.token_ids(tokenizer, texts_b))
    rows, numbers = [], []
    for number, (a, b) in enumerate(zip(ids_a, ids_b, strict=True)):
        for window_a, window_b in windows_of(a, b, max_seq_length, doc_stride):
            rows.append(
                packing.pack_pair(
                    window_a,
                    window_b,
                    max_seq_length=max_seq_length,
                    cls=tokenizer.vocabulary.cls_id,
                    sep=tokenizer.vocabulary.sep_id,
                )
            )
            numbers.append(number)
    return packing.padded_features(rows, max_seq_length), np.array(numbers, np.int64)


def windows_of(
    ids_a: Sequence[int],
    ids_b: Sequence[int] | None,
    max_seq_length: int,
    doc_stride: int,
) -> list[tuple[Sequence[int], Sequence[int] | None]]:
    """Returns the windows over a text or a pair of texts.

    Args:
        ids_a: ids of the first text.
        ids_b: ids of the second text, or None.
        max_seq_length: maximum number of ids per row, including [CLS] and [SEP].
        doc_stride: distance between the starts of two windows. It is reduced to the
            length of a window if the windows are shorter.

    Example:
        >>> windows_of([1, 2, 3, 4, 5], None, 5, 2)
        [([1, 2, 3], None), ([3, 4, 5], None)]
    """
    if ids_b is None:
        spans = packing.window_spans(len(ids_a), max_seq_length - 2, doc_stride)
        return [(ids_a[start:stop], None) for start, stop in spans]
    room = max_seq_length - 3
    if len(ids_a) + len(ids_b) <= room:
        return [(ids_a, ids_b)]
    is_a_longer = len(ids_a) > len(ids_b)
    longer, shorter = (ids_a, ids_b) if is_a_longer else (ids_b, ids_a)
    shorter = shorter[: room // 2]
    spans = packing.window_spans(len(longer), room - len(shorter), doc_stride)
    parts = [longer[start:stop] for start, stop in spans]
    return [(part, shorter) if is_a_longer else (shorter, part) for part in parts]


def mean_over_windows(
    logits: np.ndarray, numbers: np.ndarray, num_texts: int
) -> np.ndarray:
    """Returns the mean logits over the rows of each text.

    Args:
        logits: float [rows, C].
        numbers: int [rows], index of the text of each row. Every text has a row.
        num_texts: N.

    Returns:
        float32 [N, C].
    """
    if len(logits) == num_texts:
        return logits
    sums = np.zeros((num_texts, logits.shape[1]))
    np.add.at(sums, numbers, logits)
    counts = np.bincount(numbers, minlength=num_texts)
    return (sums / counts[:, np.newaxis]).astype(np.float32)
