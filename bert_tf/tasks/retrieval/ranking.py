"""Ranks passages: search with a bi-encoder, reranking with a cross-encoder."""

import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.modeling import heads
from bert_tf.modeling import output_activation
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import record as record_module
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.tokenization import vocabulary as vocabulary_module

# Texts or pairs in memory at a time. They are sorted by length within this block.
ROWS_PER_BLOCK = 1024

# Applies a model to features: columns int32 [B, S] to float32 [B, ...].
Apply = Callable[[Mapping[str, np.ndarray]], np.ndarray]


class TextEncoder:
    """Embeds texts as vectors with a bi-encoder, usually as vectors of length 1.

    At length 1 the dot product of two vectors is their cosine. So search needs only a
    matrix product, and a passage cannot rank high merely because its vector is long.
    Cosines are between -1 and 1, where a softmax is almost uniform, so the loss divides
    them by a small temperature; without it the model could never become confident.

    Args:
        apply: from `input_ids` and `input_mask`, int32 [B, S], to float32 [B, H].
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        task: the task of the bi-encoder.
    """

    def __init__(self, apply: Apply, tokenizer: Any, task: record_module.Record):
        self._apply = apply
        self._tokenizer = tokenizer
        self._task = task

    def queries(
        self,
        texts: Sequence[str],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> np.ndarray:
        """Returns float32 [N, H] for N queries, at least one."""
        texts = with_prompt(texts, self._task.query_prompt)
        blocks = self._blocks(texts, self._task.max_query_length, "queries", progress)
        return np.concatenate(list(blocks))

    def passages(
        self,
        texts: Sequence[str],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> Iterator[np.ndarray]:
        """Yields the vectors of passages in order, float32 [at most 1024, H]."""
        texts = with_prompt(texts, self._task.passage_prompt)
        yield from self._blocks(texts, self._task.max_seq_length, "passages", progress)

    def _blocks(
        self,
        texts: Sequence[str],
        max_seq_length: int,
        unit: str,
        progress: progress_module.Progress,
    ) -> Iterator[np.ndarray]:
        for start in range(0, len(texts), ROWS_PER_BLOCK):
            part = texts[start : start + ROWS_PER_BLOCK]
            pieces = packing.token_ids(self._tokenizer, part)
            packed = features.pack_rows(
                self._tokenizer.vocabulary, pieces, max_seq_length
            )
            del packed["segment_ids"]  # All 0.
            yield _apply_sorted(self._apply, packed)
            progress(f"embed {unit}", start + len(part), len(texts), unit=unit)


class PairScorer:
    """Scores pairs of a query and a passage with a cross-encoder.

    Args:
        apply: from `input_ids`, `input_mask`, `segment_ids`, int32 [B, S], to float32
            [B].
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        task: the task of the cross-encoder.
    """

    def __init__(self, apply: Apply, tokenizer: Any, task: record_module.Record):
        self._apply = apply
        self._tokenizer = tokenizer
        self._task = task

    def scores(
        self,
        queries: Sequence[str],
        passages: Sequence[str],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> np.ndarray:
        """Returns float32 [N], the scores of N queries with one passage each."""
        found = [np.zeros(0, np.float32)]
        queries = with_prompt(queries, self._task.query_prompt)
        for start in range(0, len(queries), ROWS_PER_BLOCK):
            part = slice(start, start + ROWS_PER_BLOCK)
            packed = features.pack_pairs(
                self._tokenizer.vocabulary,
                packing.token_ids(self._tokenizer, queries[part]),
                packing.token_ids(self._tokenizer, passages[part]),
                self._task,
            )
            found.append(_apply_sorted(self._apply, packed))
            done = min(start + ROWS_PER_BLOCK, len(queries))
            progress("score pairs", done, len(queries), unit="pairs")
        activation = self._task.output_activation
        return np.asarray(output_activation.apply(np.concatenate(found), activation))


def with_prompt(texts: Sequence[str], prompt: str) -> Sequence[str]:
    """Returns the texts with a prompt before each of them."""
    return [f"{prompt}{text}" for text in texts] if prompt else texts


def _apply_sorted(apply: Apply, packed: Mapping[str, np.ndarray]) -> np.ndarray:
    """Applies a model to rows sorted by length, and restores their order.

    Sorted rows form batches of similar length, which need little padding.
    """
    order = np.argsort(np.sum(packed["input_mask"], axis=1), kind="stable")
    results = apply({name: column[order] for name, column in packed.items()})
    unsorted = np.empty_like(results)
    unsorted[order] = results
    return unsorted


class Retriever:
    """Finds passages by their vectors, which it stores in a folder.

    Args:
        model: built `BertBiEncoder`.
        encoder: applies the model to texts.
        task: the model's task.
        vocabulary: the model's vocabulary.
        checkpoint: name of the checkpoint, recorded for information only.
    """

    def __init__(
        self,
        model: heads.TaskModel,
        encoder: TextEncoder,
        *,
        task: record_module.Record,
        vocabulary: vocabulary_module.Vocabulary,
        checkpoint: str,
    ):
        self._model = model
        self._encoder = encoder
        self._task = task
        self._vocabulary = vocabulary
        self._checkpoint = checkpoint

    def index(
        self,
        corpus: examples_module.Corpus,
        folder: str,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> search_module.PassageIndex:
        """Returns the vectors of a corpus, computed if the folder does not have them.

        Args:
            corpus: the passages.
            folder: path of the folder that contains the vectors.
            progress: called with the number of passages embedded.

        Raises:
            OSError: the vectors cannot be written.
        """
        made_by = search_module.fingerprint(
            self._model,
            self._task,
            self._vocabulary,
            checkpoint=self._checkpoint,
            corpus=corpus,
        )
        index = search_module.find(folder, made_by)
        if index is not None:
            return index
        path = os.path.join(folder, search_module.VECTORS_FILE)
        with locks.output_file(path, waits=True):
            # Another process may have written it in the meantime.
            if not search_module.is_made_by(folder, made_by):
                search_module.write(
                    folder,
                    corpus,
                    self._encoder.passages(corpus.passages, progress=progress),
                    width=self._model.config.hidden_size,
                    made_by=made_by,
                )
            return search_module.PassageIndex(path)

    def rank(
        self,
        queries: Sequence[str],
        index: search_module.PassageIndex,
        top_k: int,
        *,
        search: str = "exact",
        progress: progress_module.Progress = progress_module.silent,
    ) -> search_module.Neighbors:
        """Returns the best passages of each query; see `search.search`.

        Args:
            queries: N queries.
            index: the vectors of the corpus.
            top_k: number of passages per query.
            search: kind of search.
            progress: called with the number of queries embedded and passages searched.
        """
        vectors = self._encoder.queries(queries, progress=progress)
        return search_module.search(
            vectors, index, top_k, kind=search, progress=progress
        )


def rerank(
    scorer: PairScorer,
    queries: Sequence[str],
    found: search_module.Neighbors,
    passages: Sequence[str],
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> search_module.Neighbors:
    """Returns the passages found, reordered by the scores of a cross-encoder.

    Args:
        scorer: applies the cross-encoder to pairs.
        queries: N queries.
        found: K passages for each query.
        passages: the texts of the whole corpus.
        progress: called with the number of pairs scored.
    """
    num_found = found.numbers.shape[1]
    scores = scorer.scores(
        [query for query in queries for _ in range(num_found)],
        [passages[number] for number in found.numbers.ravel()],
        progress=progress,
    ).reshape(found.numbers.shape)
    order = np.argsort(-scores, axis=1, kind="stable")
    return search_module.Neighbors(
        numbers=np.take_along_axis(found.numbers, order, axis=1),
        scores=np.take_along_axis(scores, order, axis=1),
    )
