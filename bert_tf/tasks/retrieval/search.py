"""Text vectors of a bi-encoder, the search in them, and scores of a cross-encoder.

Shape letters: N queries, K results per query, M passages, H hidden.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.modeling import numerics
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features

PASSAGES_FILE = "passages.jsonl"
# Scores in memory at a time.
SCORES_PER_BLOCK = 2**24
# Texts or pairs in memory at a time.
TEXTS_PER_BLOCK = 1024
# Applies a model to features: columns int32 [B, S] to float32 [B, ...].
Apply = Callable[[Mapping[str, np.ndarray]], np.ndarray]


def write_passages(folder: str, corpus: examples_module.Corpus) -> None:
    """Writes the passages of a run, which its predictor searches.

    Raises:
        OSError: the file cannot be written.
    """
    files.make_folders(folder)
    with files.complete_or_absent(os.path.join(folder, PASSAGES_FILE)) as file:
        for own_id, passage in zip(corpus.ids, corpus.passages, strict=True):
            record = {"id": own_id, "passage": passage}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


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
    top_k = min(top_k, len(vectors))
    numbers = np.zeros((len(queries), top_k), np.int64)
    scores = np.zeros((len(queries), top_k), np.float32)
    rows = max(1, SCORES_PER_BLOCK // len(vectors))
    for start in range(0, len(queries), rows):
        part = slice(start, start + rows)
        # Of equal scores the first one wins, so the order is that of the corpus.
        best = tf.math.top_k(queries[part] @ vectors.T, top_k)
        numbers[part], scores[part] = best.indices, best.values
        done = min(start + rows, len(queries))
        progress_module.report("search", done, len(queries), unit="queries")
    return Neighbors(numbers=numbers, scores=scores)


class Retriever:
    """Embeds texts with a bi-encoder.

    Vectors usually have length 1. Then the dot product of two vectors is their cosine.
    So search needs only a matrix product, and a passage cannot rank high merely because
    its vector is long. Cosines are between -1 and 1, where a softmax is almost uniform,
    so the loss divides them by a small temperature; without it the model could never
    become confident.

    Args:
        apply: applies the model: `input_ids` and `input_mask`, int32 [B, S], to
            float32 [B, H].
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        task: the model's task.
    """

    def __init__(self, apply: Apply, tokenizer: Any, task: features.Record):
        self._apply = apply
        self._tokenizer = tokenizer
        self._task = task

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of N queries, at least one: float32 [N, H]."""
        texts = _with_prompt(texts, self._task.query_prompt)
        blocks = self._blocks(texts, self._task.max_query_length, "queries")
        return np.concatenate(list(blocks))

    def passages(
        self, texts: Sequence[str], *, unit: str = "passages"
    ) -> Iterator[np.ndarray]:
        """Yields the vectors of passages in order, float32 [at most 1024, H].

        `unit` is what progress and warnings call them.
        """
        texts = _with_prompt(texts, self._task.passage_prompt)
        yield from self._blocks(texts, self._task.max_seq_length, unit)

    def corpus(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of M passages, at least one: float32 [M, H]."""
        return np.concatenate(list(self.passages(texts)))

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
