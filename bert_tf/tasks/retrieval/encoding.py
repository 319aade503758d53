"""Applies a model to texts: bi-encoders give vectors, cross-encoders give scores."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.modeling import output_activation
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import source as retrieval_source
from bert_tf.tasks.retrieval import task as retrieval_task

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

    def __init__(self, apply: Apply, tokenizer: Any, task: retrieval_task.Task):
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

    def __init__(self, apply: Apply, tokenizer: Any, task: retrieval_task.Task):
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
            packed = retrieval_source.pack_pairs(
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
