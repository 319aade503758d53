"""Finds repeated paragraphs and near-duplicate documents."""

from collections.abc import Sequence

import numpy as np

from bert_tf.preparation import minhash
from bert_tf.preparation import parts as parts_module

# How many hashes of 8 bytes are sorted at once; sorting needs about five times that.
_HASHES_AT_ONCE = 1 << 23
_BANDS, _ROWS = 16, 8  # Documents that agree in all rows of a band are compared.
_SIMILARITY = 0.8  # Documents that share more values are near duplicates.
_PAIRS_AT_ONCE = 1 << 16


def first_paragraphs(
    parts: Sequence[parts_module.Part], kept_documents: np.ndarray
) -> np.ndarray:
    """Returns which paragraphs are the first of their kind, bool [P] over all parts.

    Paragraphs are compared by 64 bits of a hash. Among 10^9 different paragraphs, the
    probability of a single collision is 3 %. Memory: one byte per paragraph and about
    350 MB.

    Args:
        parts: the corpus.
        kept_documents: bool [D]; paragraphs of documents that are not kept are not kept
            either.
    """
    kept = _paragraphs_of(parts, kept_documents)
    num_groups = -(-len(kept) // _HASHES_AT_ONCE) or 1
    for group in range(num_groups):
        hashes, places, place = [np.zeros(0, "<u8")], [np.zeros(0, np.int64)], 0
        for part in parts:
            some = part.paragraphs()["hash"]
            chosen = kept[place : place + len(some)] & (some % num_groups == group)
            hashes.append(some[chosen])
            places.append(place + np.flatnonzero(chosen))
            place += len(some)
        repeated = _repeated(np.concatenate(hashes))
        kept[np.concatenate(places)[repeated]] = False
    return kept


def first_documents(parts: Sequence[parts_module.Part]) -> np.ndarray:
    """Returns which documents have no near duplicate before them, bool [D].

    Two documents are near duplicates if their signatures share 80 % of the values.
    Documents linked directly or through other documents form a cluster, and the first
    document of each cluster is kept.

    Args:
        parts: the corpus, with signatures.
    """
    sizes = [len(part.documents()) for part in parts]
    leaders = np.arange(sum(sizes))
    for band in range(_BANDS):
        columns = slice(band * _ROWS, (band + 1) * _ROWS)
        keys = [np.zeros(0, np.uint64)]
        keys += [_band_keys(part.signatures()[:, columns]) for part in parts]
        pairs = _neighbors(np.concatenate(keys))
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            some = pairs[start : start + _PAIRS_AT_ONCE]
            for first, second in some[_are_similar(parts, sizes, some)]:
                _join(leaders, first, second)
    return np.array([_leader(leaders, n) == n for n in range(len(leaders))], bool)


def _paragraphs_of(parts, kept_documents):
    columns = [part.documents()["paragraphs"] for part in parts]
    sizes = np.concatenate([np.zeros(0, np.int64), *columns]).astype(np.int64)
    return np.repeat(kept_documents, sizes)


def _repeated(values):
    """Returns the indices of values that occur earlier."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return order[1:][ordered[1:] == ordered[:-1]]


def _band_keys(values):
    """Returns a hash of each row, uint64."""
    factors = np.arange(1, 2 * _ROWS, 2, dtype=np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    keys = values.astype(np.uint64) ^ (values.astype(np.uint64) << np.uint64(31))
    return (keys * factors).sum(axis=1, dtype=np.uint64)


def _neighbors(keys):
    """Returns pairs of documents with equal keys: each with its predecessor."""
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    return np.stack([order[:-1][same], order[1:][same]], axis=1)


def _are_similar(parts, sizes, pairs):
    wanted, places = np.unique(pairs, return_inverse=True)
    rows = np.zeros((len(wanted), minhash.NUM_VALUES), np.uint32)
    ends = np.cumsum(sizes)
    part_of = np.searchsorted(ends, wanted, side="right")
    for number in np.unique(part_of):
        chosen = part_of == number
        first = ends[number] - sizes[number]
        rows[chosen] = parts[number].signatures()[wanted[chosen] - first]
    places = places.reshape(pairs.shape)
    equal = rows[places[:, 0]] == rows[places[:, 1]]
    return equal.mean(axis=1) >= _SIMILARITY


def _leader(leaders, number):
    while leaders[number] != number:
        leaders[number] = leaders[leaders[number]]
        number = leaders[number]
    return number


def _join(leaders, first, second):
    first, second = _leader(leaders, first), _leader(leaders, second)
    leaders[max(first, second)] = min(first, second)
