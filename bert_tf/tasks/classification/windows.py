"""Texts to rows of pieces: one row each, or windows over those that are too long.

Shape letters: S sequence.
"""

from collections.abc import Sequence

import numpy as np

from bert_tf.data import packing


def pack(
    tokenizer,
    texts: Sequence[str],
    *,
    texts_b: Sequence[str] | None = None,
    max_seq_length: int,
    doc_stride: int = 0,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns the encoder's features, and which text each row is of.

    Args:
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        texts: N texts.
        texts_b: N second texts, or None.
        max_seq_length: length of the rows, S.
        doc_stride: 0: a text that is too long is cut, a row a text. Else it has a row
            every `doc_stride` pieces, until its last piece is in one. Of a pair, the
            longer text is cut into windows, and the other one is whole in each of
            them, as far as half of the row holds it.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [rows, S], and int64 [rows],
        ascending: the number of the text, from 0.
    """
    if not doc_stride:
        packed = packing.pack(
            tokenizer, texts, texts_b=texts_b, max_seq_length=max_seq_length
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
    """Returns the parts of a text, or of a pair, that are to be rows.

    Args:
        ids_a: pieces of the text.
        ids_b: pieces of the second text, or None.
        max_seq_length: the most pieces of a row, [CLS] and [SEP] included.
        doc_stride: pieces from the start of a window to that of the next one; fewer
            where the other text leaves the windows less room.

    Example:
        >>> windows_of([1, 2, 3, 4, 5], None, 5, 2)
        [([1, 2, 3], None), ([3, 4, 5], None)]
    """
    if ids_b is None:
        room = max_seq_length - 2
        return [(part, None) for part in _slide(ids_a, room, doc_stride)]
    room = max_seq_length - 3
    if len(ids_a) + len(ids_b) <= room:
        return [(ids_a, ids_b)]
    if len(ids_a) > len(ids_b):
        kept = ids_b[: room // 2]
        return [(part, kept) for part in _slide(ids_a, room - len(kept), doc_stride)]
    kept = ids_a[: room // 2]
    return [(kept, part) for part in _slide(ids_b, room - len(kept), doc_stride)]


def _slide(ids, room, doc_stride):
    """Returns windows of `room` pieces; the last one may be shorter."""
    stride = min(doc_stride, room)
    starts = [0]
    while starts[-1] + room < len(ids):
        starts.append(starts[-1] + stride)
    return [ids[start : start + room] for start in starts]


def mean_over_windows(
    logits: np.ndarray, numbers: np.ndarray, num_texts: int
) -> np.ndarray:
    """Returns the mean of the logits of each text's rows.

    Args:
        logits: float [rows, C].
        numbers: int [rows], of the text that a row is of; every text has a row.
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
