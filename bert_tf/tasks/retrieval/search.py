"""Passage vectors in a file, and exact search over them in NumPy or with faiss.

The file is in the safetensors format: a tensor `embeddings`, float32 [M, H], and as
metadata the checkpoint and the hashes of its weights and of the corpus. The hashes
ensure that vectors of another model or corpus are never used.

Shape letters: N queries, K results per query, M passages, H hidden.
"""

import dataclasses
import hashlib
import json
import operator
import os
import struct
import weakref
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Protocol

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.modeling import heads
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import record as record_module
from bert_tf.tokenization import vocabulary as vocabulary_module

VECTORS_FILE = "passage_embeddings.safetensors"
PASSAGES_FILE = "passages.jsonl"
TENSOR = "embeddings"
ROWS_PER_BLOCK = 8192
_LENGTH = struct.Struct("<Q")  # The file begins with the header's length in bytes.
_BYTES_PER_FLOAT = 4
# What reading the header of a damaged file may raise.
_DAMAGED = (
    struct.error,
    ValueError,
    KeyError,
    TypeError,
    MemoryError,
    OverflowError,
    RecursionError,
)


class PassageIndex:
    """Passage vectors in a file, read in blocks.

    The file stays open, so the vectors remain the same even if another process replaces
    the file.

    Args:
        path: the file.

    Attributes:
        shape: (N, H).
        made_by: the `fingerprint` with which the file was written.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged or has another format.
    """

    shape: tuple[int, int]
    made_by: dict[str, str]

    def __init__(self, path: str):
        self._path = path
        self._file = files.open_file(path, "rb")
        weakref.finalize(self, self._file.close)
        try:
            (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
            header = json.loads(self._file.read(length))
            num_rows, width = header[TENSOR]["shape"]
            self.shape = (operator.index(num_rows), operator.index(width))
            self.made_by = dict(header["__metadata__"])
        except _DAMAGED:
            raise self._damaged() from None
        self._start = _LENGTH.size + length
        if files.size(path) != self._start + _size(self.shape):
            raise self._damaged()

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields (index of the first row, float32 [at most 8192, H])."""
        num_rows, width = self.shape
        for first in range(0, num_rows, ROWS_PER_BLOCK):
            count = min(ROWS_PER_BLOCK, num_rows - first)
            self._file.seek(self._start + first * width * _BYTES_PER_FLOAT)
            data = self._file.read(count * width * _BYTES_PER_FLOAT)
            yield first, np.frombuffer(data, "<f4").reshape(count, width)

    def _damaged(self) -> ValueError:
        return ValueError(
            f"{self._path} is damaged or is not a file of vectors; delete it to "
            "recompute the vectors."
        )


def fingerprint(
    model: heads.TaskModel,
    task: record_module.Record,
    vocabulary: vocabulary_module.Vocabulary,
    *,
    checkpoint: str,
    corpus: examples_module.Corpus,
) -> dict[str, str]:
    """Returns everything that the vectors of a corpus depend on.

    Args:
        model: built `BertBiEncoder`.
        task: the model's task.
        vocabulary: the model's vocabulary.
        checkpoint: name of the checkpoint, recorded for information only.
        corpus: the passages.
    """
    digest = hashlib.sha256()
    for weight in model.weights:
        digest.update(np.ascontiguousarray(weight.numpy()).data)
    return {
        "checkpoint": checkpoint,
        "weights_sha256": digest.hexdigest(),
        "corpus": corpus.path,
        "corpus_sha256": corpus.fingerprint,
        "vocabulary": str(vocabulary.fingerprint),
        "task": json.dumps(task.to_dict(), sort_keys=True),
    }


def find(folder: str, made_by: dict[str, str]) -> PassageIndex | None:
    """Returns the vectors of a model and a corpus, if a folder has them.

    Args:
        folder: path of the folder.
        made_by: the `fingerprint` of model and corpus.
    """
    path = os.path.join(folder, VECTORS_FILE)
    if not files.exists(path) or not files.exists(os.path.join(folder, PASSAGES_FILE)):
        return None
    try:
        index = PassageIndex(path)
    except (FileNotFoundError, ValueError):
        return None  # A damaged file is recomputed. Another process removes old ones.
    names = ("weights_sha256", "corpus_sha256", "vocabulary", "task")
    is_right = all(index.made_by.get(name) == made_by[name] for name in names)
    return index if is_right else None


def is_made_by(folder: str, made_by: dict[str, str]) -> bool:
    """Returns whether a folder has the vectors of a model and a corpus; see `find`."""
    return find(folder, made_by) is not None


def write(
    folder: str,
    corpus: examples_module.Corpus,
    blocks: Iterable[np.ndarray],
    *,
    width: int,
    made_by: dict[str, str],
) -> None:
    """Writes the passages, and their vectors block by block.

    Old vectors are deleted first and new ones are written last. So vectors are never
    stored beside other passages, even if the process is killed in between.

    Args:
        folder: path of the folder, created if it does not exist.
        corpus: N passages.
        blocks: float32 [rows, H], the vectors of all passages in order.
        width: H.
        made_by: the `fingerprint` of model and corpus.

    Raises:
        OSError: a file cannot be written.
    """
    shape = (len(corpus), width)
    header = {
        "__metadata__": made_by,
        TENSOR: {"dtype": "F32", "shape": shape, "data_offsets": [0, _size(shape)]},
    }
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # Aligns the vectors.
    path = os.path.join(folder, VECTORS_FILE)
    if files.exists(path):
        files.remove(path)
    with files.complete_or_absent(os.path.join(folder, PASSAGES_FILE)) as file:
        for own_id, passage in zip(corpus.ids, corpus.passages, strict=True):
            record = {"id": own_id, "passage": passage}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    with files.complete_or_absent(path, "wb") as file:
        file.write(_LENGTH.pack(len(text)) + text)
        for block in blocks:
            file.write(np.ascontiguousarray(block, "<f4").tobytes())


def _size(shape: tuple[int, int]) -> int:
    return shape[0] * shape[1] * _BYTES_PER_FLOAT


QUERIES_PER_BLOCK = 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class Neighbors:
    """The best passages of each query, best first."""

    numbers: np.ndarray  # int64 [N, K], indices in the corpus.
    scores: np.ndarray  # float32 [N, K]; dot products or a cross-encoder's scores.


class Index(Protocol):
    """Passage vectors that are read in blocks, such as `PassageIndex`."""

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
    if kind not in retrieval_options.SEARCHES:
        known = " or ".join(retrieval_options.SEARCHES)
        raise ValueError(f"Unknown search {kind!r}; expected {known}.")
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
