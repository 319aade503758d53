"""Text vectors of a bi-encoder: computed, stored in a file, and searched.

The file is in the safetensors format: a tensor `embeddings`, float32 [M, H], and as
metadata the checkpoint and the hashes of its weights and of the corpus. The hashes
ensure that vectors of another model or corpus are never used. A checksum of the vectors
is compared whenever all of them are read.

Shape letters: N queries, K results per query, M passages, H hidden.
"""

import contextlib
import dataclasses
import hashlib
import json
import operator
import os
import shutil
import struct
import tempfile
import weakref
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features
from bert_tf.tokenization import vocabulary as vocabulary_module

VECTORS_FILE = "passage_embeddings.safetensors"
PASSAGES_FILE = "passages.jsonl"
TENSOR = "embeddings"
ROWS_PER_BLOCK = 8192
QUERIES_PER_BLOCK = 1024
# Texts or pairs in memory at a time. They are sorted by length within this block.
TEXTS_PER_BLOCK = 1024
# Applies a model to features: columns int32 [B, S] to float32 [B, ...].
Apply = Callable[[Mapping[str, np.ndarray]], np.ndarray]
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
            self._checksum = self.made_by.pop(companion_files.DATA_CHECKSUM)
        except _DAMAGED:
            raise self._damaged() from None
        self._start = _LENGTH.size + length
        if files.size(path) != self._start + _size(self.shape):
            raise self._damaged()

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields (index of the first row, float32 [at most 8192, H]).

        Raises:
            ValueError: after the last block, if the vectors do not match the checksum.
        """
        num_rows, width = self.shape
        digest = hashlib.sha256()
        for first in range(0, num_rows, ROWS_PER_BLOCK):
            count = min(ROWS_PER_BLOCK, num_rows - first)
            self._file.seek(self._start + first * width * _BYTES_PER_FLOAT)
            data = self._file.read(count * width * _BYTES_PER_FLOAT)
            digest.update(data)
            yield first, np.frombuffer(data, "<f4").reshape(count, width)
        if digest.hexdigest() != self._checksum:
            raise self._damaged()

    def _damaged(self) -> ValueError:
        return ValueError(
            f"{self._path} is damaged or is not a file of vectors; delete it to "
            "recompute the vectors."
        )


def fingerprint(
    model: Any,
    task: features.Record,
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
    is_same = all(index.made_by.get(name) == made_by[name] for name in names)
    return index if is_same else None


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
    digest = hashlib.sha256()
    unknown = digest.hexdigest()  # Until all vectors are written.
    header = {
        "__metadata__": {**made_by, companion_files.DATA_CHECKSUM: unknown},
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
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(files.complete_or_absent(path, "wb"))
        # The header comes first, and an object in a store cannot be changed later.
        is_remote = files.is_remote(path)
        file = stack.enter_context(tempfile.TemporaryFile()) if is_remote else target
        file.write(_LENGTH.pack(len(text)) + text)
        for block in blocks:
            data = np.ascontiguousarray(block, "<f4").tobytes()
            digest.update(data)
            file.write(data)
        file.seek(_LENGTH.size + text.index(unknown.encode()))
        file.write(digest.hexdigest().encode())
        if is_remote:
            file.seek(0)
            shutil.copyfileobj(file, target)


def _size(shape: tuple[int, int]) -> int:
    return shape[0] * shape[1] * _BYTES_PER_FLOAT


@dataclasses.dataclass(frozen=True, kw_only=True)
class Neighbors:
    """The best passages of each query, best first."""

    numbers: np.ndarray  # int64 [N, K], indices in the corpus.
    scores: np.ndarray  # float32 [N, K]; dot products or a cross-encoder's scores.


def search(queries: np.ndarray, index: PassageIndex, top_k: int) -> Neighbors:
    """Returns the passages with the highest dot products.

    One block of passages is in memory at a time.

    Args:
        queries: float32 [N, H].
        index: the passage vectors, M in total.
        top_k: K; M if there are fewer passages.
    """
    num_passages = index.shape[0]
    top_k = min(top_k, num_passages)
    numbers = np.zeros((len(queries), top_k), np.int64)
    scores = np.full((len(queries), top_k), -np.inf, np.float32)
    for first, block in index.blocks():
        for start in range(0, len(queries), QUERIES_PER_BLOCK):
            part = slice(start, start + QUERIES_PER_BLOCK)
            numbers[part], scores[part] = _merge_block(
                numbers[part], scores[part], queries[part] @ block.T, first
            )
        done = first + len(block)
        progress_module.report("search", done, num_passages, unit="passages")
    return Neighbors(numbers=numbers, scores=scores)


def _merge_block(numbers, scores, new_scores, first):
    """Returns the best of the results so far, [N, K], and of a new block.

    The passage that comes first in the corpus wins a tie, so that the results do not
    depend on how the passages are divided into blocks.
    """
    top_k = scores.shape[1]
    new_numbers = np.broadcast_to(
        np.arange(first, first + new_scores.shape[1]), new_scores.shape
    )
    numbers = np.concatenate([numbers, new_numbers], axis=1)
    scores = np.concatenate([scores, new_scores], axis=1)
    # Keep every passage that ties with the last one; the sort below decides.
    last = np.partition(-scores, top_k - 1, axis=1)[:, top_k - 1 : top_k]
    most = int(np.max(np.sum(-scores <= last, axis=1)))
    places = np.argsort(-scores <= last, axis=1, kind="stable")[:, -most:]
    numbers = np.take_along_axis(numbers, places, axis=1)
    scores = np.take_along_axis(scores, places, axis=1)
    places = np.lexsort((numbers, -scores), axis=1)[:, :top_k]
    return (
        np.take_along_axis(numbers, places, axis=1),
        np.take_along_axis(scores, places, axis=1),
    )


class Retriever:
    """Embeds texts with a bi-encoder, stores the vectors, and searches them.

    Vectors usually have length 1. Then the dot product of two vectors is their cosine.
    So search needs only a matrix product, and a passage cannot rank high merely because
    its vector is long. Cosines are between -1 and 1, where a softmax is almost uniform,
    so the loss divides them by a small temperature; without it the model could never
    become confident.

    Args:
        model: built `BertBiEncoder`.
        apply: applies it: `input_ids` and `input_mask`, int32 [B, S], to float32
            [B, H].
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        task: the model's task.
        checkpoint: name of the checkpoint, recorded for information only.
    """

    def __init__(
        self,
        model: Any,
        apply: Apply,
        tokenizer: Any,
        task: features.Record,
        *,
        checkpoint: str,
    ):
        self._model = model
        self._apply = apply
        self._tokenizer = tokenizer
        self._task = task
        self._checkpoint = checkpoint

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of N queries, at least one: float32 [N, H]."""
        texts = with_prompt(texts, self._task.query_prompt)
        blocks = self._blocks(texts, self._task.max_query_length, "queries")
        return np.concatenate(list(blocks))

    def passages(self, texts: Sequence[str]) -> Iterator[np.ndarray]:
        """Yields the vectors of passages in order, float32 [at most 1024, H]."""
        texts = with_prompt(texts, self._task.passage_prompt)
        yield from self._blocks(texts, self._task.max_seq_length, "passages")

    def index(self, corpus: examples_module.Corpus, folder: str) -> PassageIndex:
        """Returns the vectors of a corpus, computed if the folder does not have them.

        Raises:
            OSError: the vectors cannot be written.
        """
        made_by = fingerprint(
            self._model,
            self._task,
            self._tokenizer.vocabulary,
            checkpoint=self._checkpoint,
            corpus=corpus,
        )
        index = find(folder, made_by)
        if index is not None:
            return index
        path = os.path.join(folder, VECTORS_FILE)
        with locks.output_file(path, waits=True):
            # Another process may have written it in the meantime.
            if find(folder, made_by) is None:
                vectors = self.passages(corpus.passages)
                width = self._model.config.hidden_size
                write(folder, corpus, vectors, width=width, made_by=made_by)
            return PassageIndex(path)

    def rank(
        self, queries: Sequence[str], index: PassageIndex, top_k: int
    ) -> Neighbors:
        """Returns the best passages of each query; see `search`."""
        return search(self.queries(queries), index, top_k)

    def _blocks(self, texts, max_seq_length, unit):
        lengths: list[int] = []
        for start in range(0, len(texts), TEXTS_PER_BLOCK):
            part = texts[start : start + TEXTS_PER_BLOCK]
            pieces = packing.token_ids(self._tokenizer, part)
            lengths += map(len, pieces)
            packed = features.pack_rows(
                self._tokenizer.vocabulary, pieces, max_seq_length
            )
            del packed["segment_ids"]  # All 0.
            yield apply_sorted(self._apply, packed)
            done = start + len(part)
            progress_module.report(f"embed {unit}", done, len(texts), unit=unit)
        text_checks.warn_of_truncated(
            lengths,
            room=max_seq_length - 2,
            limit=f"{max_seq_length} word pieces",
            inputs=unit,
        )


def with_prompt(texts: Sequence[str], prompt: str) -> Sequence[str]:
    """Returns the texts with a prompt before each of them."""
    return [f"{prompt}{text}" for text in texts] if prompt else texts


def apply_sorted(apply: Apply, packed: Mapping[str, np.ndarray]) -> np.ndarray:
    """Applies a model to rows sorted by length, and restores their order.

    Sorted rows form batches of similar length, which need little padding.
    """
    order = np.argsort(np.sum(packed["input_mask"], axis=1), kind="stable")
    results = apply({name: column[order] for name, column in packed.items()})
    unsorted = np.empty_like(results)
    unsorted[order] = results
    return unsorted
