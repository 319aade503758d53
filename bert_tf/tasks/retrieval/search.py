"""The nearest vectors: exactly, or with a library of nearest neighbours.

Shape letters: N queries, K results of a query, M passages, H hidden.
"""

import dataclasses

import numpy as np

from bert_tf import progress as progress_module

KINDS = ("exact", "hnswlib", "faiss")
QUERIES_PER_BLOCK = 1024
# hnswlib: links of a passage, and candidates while building and searching. Its own
# examples have 16 and 200.
_LINKS = 16
_CANDIDATES = 200


@dataclasses.dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The best passages of each query, the best one first."""

    numbers: np.ndarray  # int64 [N, K], places in the corpus.
    scores: np.ndarray  # float32 [N, K], cosines.


def search(
    queries: np.ndarray,
    index,
    top_k: int,
    *,
    kind: str = "exact",
    progress: progress_module.Progress = progress_module.silent,
) -> Neighbours:
    """Returns the passages with the highest dot products.

    Args:
        queries: float32 [N, H].
        index: `passage_index.PassageIndex`, or any with its `shape` and `blocks()`.
        top_k: K; less where there are fewer passages.
        kind: "exact": a block of passages is in memory at a time; "hnswlib": almost
            exact, all in memory, fast for many queries; "faiss": exact, all in memory.
        progress: told how many passages are done.

    Raises:
        ImportError: the library of that kind is not installed.
        ValueError: there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"Unknown search {kind!r}; expected one of {KINDS}.")
    top_k = min(top_k, index.shape[0])
    find = {"exact": _exact, "hnswlib": _hnswlib, "faiss": _faiss}[kind]
    return find(queries, _told(index, progress), index.shape, top_k)


def check_installed(kind: str) -> None:
    """Raises ImportError, with what to install, where a search lacks its library."""
    if kind != "exact":
        _library(kind)


def _told(index, progress):
    for first, block in index.blocks():
        yield first, block
        progress("search", first + len(block), index.shape[0], unit="passages")


def _exact(queries, blocks, shape, top_k):
    numbers = np.zeros((len(queries), 0), np.int64)
    scores = np.zeros((len(queries), 0), np.float32)
    for first, block in blocks:
        parts = [
            _best_of(
                numbers[start : start + QUERIES_PER_BLOCK],
                scores[start : start + QUERIES_PER_BLOCK],
                queries[start : start + QUERIES_PER_BLOCK] @ block.T,
                first,
                top_k,
            )
            for start in range(0, len(queries), QUERIES_PER_BLOCK)
        ]
        numbers = np.concatenate([numbers for numbers, _ in parts])
        scores = np.concatenate([scores for _, scores in parts])
    return Neighbours(numbers=numbers, scores=scores)


def _best_of(numbers, scores, new_scores, first, top_k):
    """Returns the best of those so far and of a block; of equal ones the first."""
    new_numbers = np.broadcast_to(
        np.arange(first, first + new_scores.shape[1]), new_scores.shape
    )
    numbers = np.concatenate([numbers, new_numbers], axis=1)
    scores = np.concatenate([scores, new_scores], axis=1)
    if scores.shape[1] > top_k:
        # All that reach the score of the last one stay, so that order decides on ties.
        last = np.partition(-scores, top_k - 1, axis=1)[:, top_k - 1 : top_k]
        kept = int(np.max(np.sum(-scores <= last, axis=1)))
        places = np.argsort(-scores <= last, axis=1, kind="stable")[:, -kept:]
        numbers = np.take_along_axis(numbers, places, axis=1)
        scores = np.take_along_axis(scores, places, axis=1)
    places = np.lexsort((numbers, -scores), axis=1)[:, :top_k]
    return (
        np.take_along_axis(numbers, places, axis=1),
        np.take_along_axis(scores, places, axis=1),
    )


def _hnswlib(queries, blocks, shape, top_k):
    num_passages, width = shape
    index = _library("hnswlib").Index(space="ip", dim=width)
    index.init_index(num_passages, ef_construction=_CANDIDATES, M=_LINKS)
    for first, block in blocks:
        index.add_items(block, np.arange(first, first + len(block)))
    index.set_ef(max(_CANDIDATES, 2 * top_k))
    numbers, distances = index.knn_query(queries, k=top_k)
    return Neighbours(numbers=numbers.astype(np.int64), scores=1 - distances)


def _faiss(queries, blocks, shape, top_k):
    index = _library("faiss").IndexFlatIP(shape[1])
    for _, block in blocks:
        index.add(np.ascontiguousarray(block, np.float32))
    scores, numbers = index.search(np.ascontiguousarray(queries, np.float32), top_k)
    return Neighbours(numbers=numbers.astype(np.int64), scores=scores)


def _library(kind):
    try:
        if kind == "hnswlib":
            import hnswlib

            return hnswlib
        import faiss

        return faiss
    except ImportError:
        raise ImportError(
            f"--search={kind} needs a package that is not installed: pip install "
            f"{'faiss-cpu' if kind == 'faiss' else kind}, or pip install "
            "'bert_tf[search]'. --search=exact needs none."
        ) from None
