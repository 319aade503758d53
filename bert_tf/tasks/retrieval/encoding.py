"""A model applied to texts: vectors of a bi-encoder, scores of a cross-encoder."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import source as retrieval_source

# Texts or pairs that are sorted by length together, and in memory at a time.
ROWS_PER_BLOCK = 1024

# Columns int32 [B, S] -> float32 [B, ...]: how a model is applied to rows.
Apply = Callable[[Mapping[str, np.ndarray]], np.ndarray]


class TextEncoder:
    """Texts to vectors of length 1.

    Args:
        apply: from `input_ids` and `input_mask`, int32 [B, S], to float32 [B, H].
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        task: `task.Task` of a bi-encoder.
    """

    def __init__(self, apply: Apply, tokenizer, task):
        self._apply = apply
        self._tokenizer = tokenizer
        self._task = task

    def queries(
        self,
        texts: Sequence[str],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        """Returns float32 [N, H] for N queries, at least one."""
        blocks = self._blocks(texts, self._task.max_query_length, "queries", progress)
        return np.concatenate(list(blocks))

    def passages(
        self,
        texts: Sequence[str],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> Iterator[np.ndarray]:
        """Yields float32 [1024 or the rest, H], one after the other, for passages."""
        yield from self._blocks(texts, self._task.max_seq_length, "passages", progress)

    def _blocks(self, texts, max_seq_length, unit, progress):
        for start in range(0, len(texts), ROWS_PER_BLOCK):
            part = texts[start : start + ROWS_PER_BLOCK]
            pieces = packing.token_ids(self._tokenizer, part)
            packed = features.pack_rows(
                self._tokenizer.vocabulary, pieces, max_seq_length
            )
            del packed["segment_ids"]  # All 0.
            yield _in_order_of_length(self._apply, packed)
            progress(f"embed {unit}", start + len(part), len(texts), unit=unit)


class PairScorer:
    """Queries with passages to scores.

    Args:
        apply: from `input_ids`, `input_mask`, `segment_ids`, int32 [B, S], to float32
            [B].
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        task: `task.Task` of a cross-encoder.
    """

    def __init__(self, apply: Apply, tokenizer, task):
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
        """Returns float32 [N] for N queries, each with the passage at its place."""
        found = [np.zeros(0, np.float32)]
        for start in range(0, len(queries), ROWS_PER_BLOCK):
            part = slice(start, start + ROWS_PER_BLOCK)
            packed = retrieval_source.pack_pairs(
                self._tokenizer.vocabulary,
                packing.token_ids(self._tokenizer, queries[part]),
                packing.token_ids(self._tokenizer, passages[part]),
                self._task,
            )
            found.append(_in_order_of_length(self._apply, packed))
            done = min(start + ROWS_PER_BLOCK, len(queries))
            progress("score pairs", done, len(queries), unit="pairs")
        return np.concatenate(found)


def _in_order_of_length(apply, packed):
    """Applies a model to rows sorted by length; results are in the rows' own order."""
    order = np.argsort(np.sum(packed["input_mask"], axis=1), kind="stable")
    results = apply({name: column[order] for name, column in packed.items()})
    unsorted = np.empty_like(results)
    unsorted[order] = results
    return unsorted
