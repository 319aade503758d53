"""Text vectors of a bi-encoder: computed, stored in a file, and searched.

The file is in the safetensors format: a tensor `embeddings`, float32 [M, H], and as
metadata everything that they depend on, such as the hashes of the weights and of the
corpus. So vectors of another model, corpus or precision are never used.

Shape letters: N queries, K results per query, M passages, H hidden.
"""

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import safetensors.numpy
import tensorflow as tf

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.fine_tuning import backends
from bert_tf.modeling import numerics
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features

VECTORS_FILE = "passage_embeddings.safetensors"
PASSAGES_FILE = "passages.jsonl"
TENSOR = "embeddings"
ROWS_PER_BLOCK = 8192
QUERIES_PER_BLOCK = 1024
# Texts or pairs in memory at a time.
TEXTS_PER_BLOCK = 1024
# Applies a model to features: columns int32 [B, S] to float32 [B, ...].
Apply = Callable[[Mapping[str, np.ndarray]], np.ndarray]


def find(folder: str, made_by: dict[str, str]) -> np.ndarray | None:
    """Returns the vectors of a corpus, float32 [M, H], if a folder has them.

    `made_by` is the `Retriever.fingerprint` of the corpus.
    """
    path = os.path.join(folder, VECTORS_FILE)
    if not files.exists(path) or not files.exists(os.path.join(folder, PASSAGES_FILE)):
        return None
    try:
        with (
            companion_files.local_copy(path, ".safetensors") as local,
            safetensors.safe_open(local, framework="numpy") as file,
        ):
            recorded, vectors = file.metadata() or {}, file.get_tensor(TENSOR)
    except (OSError, safetensors.SafetensorError):
        return None  # A truncated file is recomputed. Another process removes old ones.
    without_effect = ("checkpoint", "corpus")
    known = {n: value for n, value in made_by.items() if n not in without_effect}
    return vectors if known.items() <= recorded.items() else None


def write(
    folder: str,
    corpus: examples_module.Corpus,
    vectors: np.ndarray,
    made_by: dict[str, str],
) -> None:
    """Writes the passages and their vectors.

    Old vectors are deleted first and new ones are written last. So vectors are never
    stored beside other passages, even if the process is killed in between.

    Args:
        folder: path of the folder, created if it does not exist.
        corpus: M passages.
        vectors: float32 [M, H], in the order of the passages.
        made_by: the `Retriever.fingerprint` of the corpus.

    Raises:
        OSError: a file cannot be written.
    """
    path = os.path.join(folder, VECTORS_FILE)
    if files.exists(path):
        files.remove(path)
    with files.complete_or_absent(os.path.join(folder, PASSAGES_FILE)) as file:
        for own_id, passage in zip(corpus.ids, corpus.passages, strict=True):
            record = {"id": own_id, "passage": passage}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    content = safetensors.numpy.save({TENSOR: vectors}, made_by)
    with files.complete_or_absent(path, "wb") as file:
        file.write(content)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Neighbors:
    """The best passages of each query, best first."""

    numbers: np.ndarray  # int64 [N, K], indices in the corpus.
    scores: np.ndarray  # float32 [N, K]; dot products or a cross-encoder's scores.


def search(queries: np.ndarray, vectors: np.ndarray, top_k: int) -> Neighbors:
    """Returns the K passages with the highest dot products; all if there are fewer.

    Args:
        queries: float32 [N, H].
        vectors: float32 [M, H], of the passages.
        top_k: K.
    """
    num_passages = len(vectors)
    top_k = min(top_k, num_passages)
    numbers = np.zeros((len(queries), top_k), np.int64)
    scores = np.full((len(queries), top_k), -np.inf, np.float32)
    for first in range(0, num_passages, ROWS_PER_BLOCK):
        block = vectors[first : first + ROWS_PER_BLOCK]
        for start in range(0, len(queries), QUERIES_PER_BLOCK):
            part = slice(start, start + QUERIES_PER_BLOCK)
            candidates = np.concatenate([scores[part], queries[part] @ block.T], axis=1)
            # Of equal scores the first one wins, that is the passage that comes first
            # in the corpus. So the results do not depend on the size of the blocks.
            best = tf.math.top_k(candidates, top_k)
            places = best.indices.numpy()  # Below K: among the results so far.
            earlier = np.take_along_axis(
                numbers[part], np.minimum(places, top_k - 1), axis=1
            )
            numbers[part] = np.where(places < top_k, earlier, first + places - top_k)
            scores[part] = best.values
        done = first + len(block)
        progress_module.report("search", done, num_passages, unit="passages")
    return Neighbors(numbers=numbers, scores=scores)


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
        backend: what computes `apply`, with its precision if it is not the model's.
    """

    def __init__(
        self,
        model: Any,
        apply: Apply,
        tokenizer: Any,
        task: features.Record,
        *,
        checkpoint: str,
        backend: str = backends.TENSORFLOW,
    ):
        self._model = model
        self._apply = apply
        self._tokenizer = tokenizer
        self._task = task
        self._checkpoint = checkpoint
        self._backend = backend

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of N queries, at least one: float32 [N, H]."""
        texts = _with_prompt(texts, self._task.query_prompt)
        blocks = self._blocks(texts, self._task.max_query_length, "queries")
        return np.concatenate(list(blocks))

    def passages(self, texts: Sequence[str]) -> Iterator[np.ndarray]:
        """Yields the vectors of passages in order, float32 [at most 1024, H]."""
        texts = _with_prompt(texts, self._task.passage_prompt)
        yield from self._blocks(texts, self._task.max_seq_length, "passages")

    def index(self, corpus: examples_module.Corpus, folder: str) -> np.ndarray:
        """Returns float32 [M, H], computed if the folder does not have the vectors.

        Raises:
            OSError: the vectors cannot be written.
        """
        made_by = self.fingerprint(corpus)
        if (vectors := find(folder, made_by)) is not None:
            return vectors
        with locks.output_file(os.path.join(folder, VECTORS_FILE), waits=True):
            # Another process may have written it in the meantime.
            if (vectors := find(folder, made_by)) is None:
                vectors = np.concatenate(list(self.passages(corpus.passages)))
                write(folder, corpus, vectors, made_by)
        return vectors

    def fingerprint(self, corpus: examples_module.Corpus) -> dict[str, str]:
        """Returns everything that the vectors of a corpus depend on."""
        digest = hashlib.sha256()
        for weight in self._model.weights:
            digest.update(np.ascontiguousarray(weight.numpy()).data)
        return {
            "checkpoint": self._checkpoint,
            "weights_sha256": digest.hexdigest(),
            "corpus": corpus.path,
            "corpus_sha256": corpus.fingerprint,
            "dtype": self._model.dtype_policy.name,
            "backend": self._backend,
            "vocabulary": str(self._tokenizer.vocabulary.fingerprint),
            "task": json.dumps(self._task.to_dict(), sort_keys=True),
        }

    def _blocks(self, texts, max_seq_length, unit):
        def pack(pieces):
            vocabulary = self._tokenizer.vocabulary
            packed = packing.pack_ids(vocabulary, pieces, max_seq_length)
            del packed["segment_ids"]  # All 0.
            return packed

        apply = functools.partial(_outputs, self._apply, self._tokenizer)
        return apply([texts], pack, max_seq_length, stage=f"embed {unit}")


def score_pairs(
    apply: Apply,
    tokenizer: Any,
    task: features.Record,
    queries: Sequence[str],
    passages: Sequence[str],
) -> np.ndarray:
    """Returns a cross-encoder's scores of N pairs, float32 [N].

    Args:
        apply: from `input_ids`, `input_mask`, `segment_ids`, int32 [B, S], to float32
            [B].
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        task: the task of the cross-encoder.
        queries: N queries.
        passages: N passages.
    """
    columns = [_with_prompt(queries, task.query_prompt), passages]
    pack = functools.partial(features.pack_pairs, tokenizer.vocabulary, task)
    outputs = _outputs(
        apply, tokenizer, columns, pack, task.max_seq_length, stage="score pairs"
    )
    scores = np.concatenate([np.zeros(0, np.float32), *outputs])
    return np.asarray(numerics.score_of(scores, task.output_activation))


def _outputs(apply, tokenizer, columns, pack, max_seq_length, *, stage):
    """Yields the outputs of a model for the next 1024 texts, or pairs of texts.

    `columns` are the texts, or the first and the second texts.
    """
    unit = stage.split()[1]
    lengths: list[int] = []
    for start in range(0, len(columns[0]), TEXTS_PER_BLOCK):
        part = slice(start, start + TEXTS_PER_BLOCK)
        pieces = [packing.token_ids(tokenizer, column[part]) for column in columns]
        lengths += [sum(map(len, row)) for row in zip(*pieces, strict=True)]
        yield apply(pack(*pieces))
        progress_module.report(stage, len(lengths), len(columns[0]), unit=unit)
    text_checks.warn_of_truncated(
        lengths,
        room=max_seq_length - len(columns) - 1,
        limit=f"{max_seq_length} word pieces",
        inputs=unit,
    )


def _with_prompt(texts: Sequence[str], prompt: str) -> Sequence[str]:
    """Returns the texts with a prompt before each of them."""
    return [f"{prompt}{text}" for text in texts] if prompt else texts
