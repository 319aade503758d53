"""Exact nearest-neighbor search over passage vectors, in NumPy or with faiss.

Shape letters: N queries, K results per query, M passages, H hidden.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Protocol

import numpy as np

from bert_tf import progress as progress_module

KINDS = ("exact", "faiss")
QUERIES_PER_BLOCK = 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class Neighbors:
    """The best passages of each query, best first."""

    numbers: np.ndarray  # int64 [N, K], indices in the corpus.
    scores: np.ndarray  # float32 [N, K]; dot products or a cross-encoder's scores.


class Index(Protocol):
    """Passage vectors that are read in blocks, such as `passage_index.PassageIndex`."""

    shape: tuple[int, int]  # (M, H)

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the index of the first passage and float32 [block, H]."""


def search(
    queries: np.ndarray,
    index: Index,
    top_k: int,
    *,
    kind: str = "exact",
    progress: progress_module.Progress = progress_module.silent,
) -> Neighbors:
    """Returns the passages with the highest dot products.

    Args:
        queries: float32 [N, H].
        index: the passage vectors, M in total.
        top_k: K; M if there are fewer passages.
        kind: "exact" holds one block of passages in memory at a time; "faiss" is also
            exact and faster, but holds all vectors in memory.
        progress: called with the number of passages searched.

    Raises:
        ImportError: faiss is not installed.
        ValueError: `kind` is unknown.
    """
    if kind not in KINDS:
        raise ValueError(f"Unknown search {kind!r}; expected one of {KINDS}.")
    top_k = min(top_k, index.shape[0])
    find = {"exact": _search_blocks, "faiss": _search_with_faiss}[kind]
    return find(queries, _with_progress(index, progress), index.shape[1], top_k)


def check_installed(kind: str) -> None:
    """Raises an ImportError that names the package to install if it is missing."""
    if kind == "faiss":
        _import_faiss()


def _with_progress(
    index: Index, progress: progress_module.Progress
) -> Iterator[tuple[int, np.ndarray]]:
    for first, block in index.blocks():
        yield first, block
        progress("search", first + len(block), index.shape[0], unit="passages")


def _search_blocks(
    queries: np.ndarray,
    blocks: Iterable[tuple[int, np.ndarray]],
    width: int,
    top_k: int,
) -> Neighbors:
    numbers = np.zeros((len(queries), 0), np.int64)
    scores = np.zeros((len(queries), 0), np.float32)
    for first, block in blocks:
        parts = [
            _merge_block(
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
    return Neighbors(numbers=numbers, scores=scores)


def _merge_block(
    numbers: np.ndarray,
    scores: np.ndarray,
    new_scores: np.ndarray,
    first: int,
    top_k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the best of the results so far and of a new block.

    The passage that comes first in the corpus wins a tie, so that the results do not
    depend on how the passages are divided into blocks.
    """
    new_numbers = np.broadcast_to(
        np.arange(first, first + new_scores.shape[1]), new_scores.shape
    )
    numbers = np.concatenate([numbers, new_numbers], axis=1)
    scores = np.concatenate([scores, new_scores], axis=1)
    if scores.shape[1] > top_k:
        # Keep every passage that ties with the last one; the sort below decides.
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


def _search_with_faiss(
    queries: np.ndarray,
    blocks: Iterable[tuple[int, np.ndarray]],
    width: int,
    top_k: int,
) -> Neighbors:
    index = _import_faiss().IndexFlatIP(width)
    for _, block in blocks:
        index.add(np.ascontiguousarray(block, np.float32))
    scores, numbers = index.search(np.ascontiguousarray(queries, np.float32), top_k)
    return Neighbors(numbers=numbers.astype(np.int64), scores=scores)


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise ImportError(
            "--search=faiss needs a package that is not installed: pip install "
            "faiss-cpu, or pip install 'bert_tf[search]'. --search=exact needs no "
            "extra package."
        ) from None
    return faiss
