"""Queries and passages as word pieces, and training batches with drawn negatives.

Shape letters: B batch, C candidates, S sequence, N examples.
"""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.data import packing
from bert_tf.data import schema as schema_module
from bert_tf.data import text_checks
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import record as record_module
from bert_tf.tokenization import vocabulary as vocabulary_module

# Large enough for an efficient tokenizer call, small enough for smooth progress.
TEXTS_PER_CALL = 1024
NO_PASSAGE = -2  # Pads `positive_ids`; not the number of any passage.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingData:
    """N examples as word piece ids, with every distinct passage stored once.

    A passage's number is its index in `passages`.
    """

    queries: tuple[list[int], ...]  # Word piece ids of each example's query.
    passages: tuple[list[int], ...]  # Word piece ids of each distinct passage.
    passage_ids: np.ndarray  # int32 [N]: number of each example's passage.
    positives: tuple[frozenset[int], ...]  # All relevant passages of each query.
    negatives: tuple[tuple[int, ...], ...]  # Wrong passages that each example gives.

    def length_facts(self, task: record_module.Record) -> tuple[str, ...]:
        """Returns sentences about truncated queries and relevant passages."""
        queries = np.array([len(pieces) for pieces in self.queries])
        num_special = 2 if task.is_bi_encoder else 3
        passages = self.passage_lengths(task) - num_special
        query_room = task.max_query_length - 2
        query_limit = f"--max_query_length={task.max_query_length}"
        of_queries = text_checks.truncation(
            queries,
            room=query_room,
            limit=query_limit,
        )
        of_passages = text_checks.truncation(
            passages,
            room=task.max_seq_length - num_special,
            limit=f"--max_seq_length={task.max_seq_length}",
        )
        suffix = "" if task.is_bi_encoder else " with their queries"
        return (
            f"Of the training queries, {of_queries}.",
            f"Of the training passages{suffix}, {of_passages}.",
        )

    def passage_lengths(self, task: record_module.Record) -> np.ndarray:
        """Returns the pieces of each relevant passage in its row, before truncation.

        These are int [N], with [CLS] and [SEP]; the row of a cross-encoder has the
        query as well.
        """
        passages = np.array([len(self.passages[i]) for i in self.passage_ids])
        if task.is_bi_encoder:
            return passages + 2
        queries = np.array([len(pieces) for pieces in self.queries])
        return passages + np.minimum(queries, task.max_query_length - 2) + 3

    @property
    def max_negatives(self) -> int:
        """The largest number of negatives that an example gives."""
        return max(map(len, self.negatives))


def convert_examples_to_features(
    examples: Sequence[examples_module.RankingExample],
    tokenizer: Any,
    *,
    corpus: examples_module.Corpus | None = None,
    query_prompt: str = "",
    passage_prompt: str = "",
    progress: progress_module.Progress = progress_module.silent,
) -> TrainingData:
    """Returns the training data of examples.

    Equal passages get one number, even across rows and files, and all rows of a query
    share their relevant passages. Otherwise a passage that answers the query could be
    drawn as one of its negatives.

    Args:
        examples: N examples with passages.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        corpus: further passages to draw negatives from.
        query_prompt: text that is put before every query.
        passage_prompt: text that is put before every passage.
        progress: called with the number of texts tokenized.
    """
    numbers: dict[str, int] = {}
    texts: list[str] = []

    def number_of(text: str) -> int:
        number = numbers.setdefault(examples_module.key(text), len(texts))
        if number == len(texts):
            texts.append(text)
        return number

    passage_ids = [number_of(example.require_passage()) for example in examples]
    negatives = [tuple(map(number_of, example.negatives)) for example in examples]
    for text in corpus.passages if corpus else ():
        number_of(text)
    right: dict[str, set[int]] = {}
    for example, number in zip(examples, passage_ids, strict=True):
        right.setdefault(examples_module.key(example.query), set()).add(number)
    positives = [right[examples_module.key(example.query)] for example in examples]
    pieces = token_ids(
        tokenizer,
        [
            *(f"{query_prompt}{example.query}" for example in examples),
            *(f"{passage_prompt}{text}" for text in texts),
        ],
        progress=progress,
    )
    return TrainingData(
        queries=tuple(pieces[: len(examples)]),
        passages=tuple(pieces[len(examples) :]),
        passage_ids=np.array(passage_ids, np.int32),
        positives=tuple(map(frozenset, positives)),
        # A passage that another row gives as right is not a negative.
        negatives=tuple(
            tuple(number for number in own if number not in known)
            for own, known in zip(negatives, positives, strict=True)
        ),
    )


def token_ids(
    tokenizer: Any,
    texts: Sequence[str],
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> list[list[int]]:
    """Returns the word piece ids of each text.

    Args:
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        texts: the texts.
        progress: called with the number of texts tokenized.
    """
    found: list[list[int]] = []
    for start in range(0, len(texts), TEXTS_PER_CALL):
        found += packing.token_ids(tokenizer, texts[start : start + TEXTS_PER_CALL])
        progress("tokenize", len(found), len(texts), unit="texts")
    return found


def pack_rows(
    vocabulary: vocabulary_module.Vocabulary,
    pieces: Sequence[Sequence[int]],
    max_seq_length: int,
    pieces_b: Sequence[Sequence[int]] | None = None,
) -> dict[str, np.ndarray]:
    """Returns `input_ids`, `input_mask`, `segment_ids`: int32 [B, S].

    Args:
        vocabulary: supplies [CLS] and [SEP].
        pieces: word piece ids of B texts.
        max_seq_length: S. Longer rows are truncated; of a pair, the longer text first.
        pieces_b: word piece ids of B second texts.
    """
    seconds: Sequence[Sequence[int] | None] = pieces_b or [None] * len(pieces)
    rows = [
        packing.pack_pair(
            a,
            b,
            max_seq_length=max_seq_length,
            cls=vocabulary.cls_id,
            sep=vocabulary.sep_id,
        )
        for a, b in zip(pieces, seconds, strict=True)
    ]
    return packing.padded_features(rows, max_seq_length)


class RankingSource(batching.Source):
    """Queries with their relevant passage and wrong ones.

    The wrong passages are those that the example gives: a random choice if it gives
    more than `num_negatives`, filled up with random passages if it gives fewer. Given
    negatives are usually hard, such as a search engine's mistakes, and teach more than
    random ones.

    A bi-encoder often needs no negatives of its own: its loss also compares each query
    with the passages of the other queries in the batch. Their vectors are computed
    anyway, so a batch of B queries gives each of them B - 1 negatives for free, and
    larger batches give a harder and more realistic task. For this loss, `passage_ids`
    and `positive_ids` identify passages in the batch that answer the query as well.

    The draws are a function of (seed, step, example), so the result does not depend on
    interruptions or on the number of replicas.

    Args:
        data: the examples.
        task: model and maximum lengths.
        vocabulary: supplies the special tokens.
        num_negatives: wrong passages per query.
        seed: seed of the draws.

    Attributes:
        num_examples: number of examples, N.
        columns: the columns of a row.

    Raises:
        ValueError: all passages are right for one query, so none can be drawn.

    Source: in-batch negatives: section 3.2 of "Dense Passage Retrieval" (Karpukhin et
    al., 2020).
    """

    def __init__(
        self,
        data: TrainingData,
        task: record_module.Record,
        vocabulary: vocabulary_module.Vocabulary,
        *,
        num_negatives: int,
        seed: int,
    ):
        self._data = data
        self._task = task
        self._vocabulary = vocabulary
        self._num_negatives = num_negatives
        self._seed = seed
        self.num_examples = len(data.queries)
        self._most_positives = max(map(len, data.positives))
        if num_negatives and self._most_positives == len(data.passages):
            raise ValueError(
                f"All {len(data.passages)} passages answer one query, so there are no "
                "negatives to draw; add passages with --corpus_file."
            )
        self._shapes = {
            name: column.shape[1:]
            for name, column in self._rows(np.int64(0), np.zeros(1, np.int64)).items()
        }
        self.columns = tuple(
            schema_module.Column(
                name=name, length=shape[-1] if shape else None, dtype="int32"
            )
            for name, shape in self._shapes.items()
        )

    def rows_at_step(
        self, step: tf.Tensor, indices: tf.Tensor, num_rows: int
    ) -> dict[str, tf.Tensor]:
        """See `batching.Source`."""
        values = tf.numpy_function(
            lambda *arguments: list(self._rows(*arguments).values()),
            [step, indices],
            [tf.int32] * len(self._shapes),
            stateful=False,
        )
        return {
            name: tf.ensure_shape(value, [num_rows, *shape])
            for (name, shape), value in zip(self._shapes.items(), values, strict=True)
        }

    def row_lengths(self) -> np.ndarray:
        """Returns the pieces of each example's relevant passage, int64 [N]."""
        return np.array(
            [
                min(len(self._data.passages[number]) + 2, self._task.max_seq_length)
                for number in self._data.passage_ids
            ]
        )

    def candidates(self, step: int, indices: np.ndarray) -> np.ndarray:
        """Returns int32 [B, 1 + num_negatives]: the relevant passage, then wrong ones.

        Args:
            step: the training step.
            indices: int64 [B], indices of the examples.
        """
        found = np.empty((len(indices), 1 + self._num_negatives), np.int32)
        for place, index in enumerate(indices):
            found[place, 0] = self._data.passage_ids[index]
            found[place, 1:] = self._negatives(step, int(index))
        return found

    def _negatives(self, step: int, index: int) -> np.ndarray:
        random = np.random.default_rng([self._seed, step, index])
        given = self._data.negatives[index]
        if len(given) > self._num_negatives:
            return random.choice(given, self._num_negatives, replace=False)
        chosen = list(given)
        while len(chosen) < self._num_negatives:
            number = int(random.integers(len(self._data.passages)))
            if number not in self._data.positives[index]:
                chosen.append(number)
        return np.array(chosen, np.int32)

    def _rows(self, step: np.int64, indices: np.ndarray) -> dict[str, np.ndarray]:
        candidates = self.candidates(int(step), indices)  # [B, C]
        if self._task.is_bi_encoder:
            return self._rows_of_texts(indices, candidates)
        queries = [self._data.queries[index] for index in indices]
        columns = pack_pairs(
            self._vocabulary,
            [query for query in queries for _ in candidates[0]],
            [self._data.passages[number] for number in candidates.ravel()],
            self._task,
        )
        return _by_example(columns, candidates.shape)

    def _rows_of_texts(
        self, indices: np.ndarray, candidates: np.ndarray
    ) -> dict[str, np.ndarray]:
        task, data = self._task, self._data
        queries = pack_rows(
            self._vocabulary,
            [data.queries[index] for index in indices],
            task.max_query_length,
        )
        passages = pack_rows(
            self._vocabulary,
            [data.passages[number] for number in candidates.ravel()],
            task.max_seq_length,
        )
        passages = _by_example(passages, candidates.shape)
        positive_ids = np.full(
            (len(indices), self._most_positives), NO_PASSAGE, np.int32
        )
        for place, index in enumerate(indices):
            own = sorted(data.positives[index])
            positive_ids[place, : len(own)] = own
        return {
            "query_input_ids": queries["input_ids"],
            "query_input_mask": queries["input_mask"],
            "input_ids": passages["input_ids"],
            "input_mask": passages["input_mask"],
            "passage_ids": candidates,
            "positive_ids": positive_ids,
        }


def pack_pairs(
    vocabulary: vocabulary_module.Vocabulary,
    queries: Sequence[Sequence[int]],
    passages: Sequence[Sequence[int]],
    task: record_module.Record,
) -> dict[str, np.ndarray]:
    """Returns the features of pairs, int32 [B, S], for a cross-encoder.

    Args:
        vocabulary: supplies the special tokens.
        queries: word piece ids of B queries.
        passages: word piece ids of B passages.
        task: its max_query_length and max_seq_length limit query and pair.
    """
    if task.longer_keeps_more:
        room = task.max_seq_length - record_module.NUM_SPECIAL_OF_PAIR
        pairs = [
            packing.truncate_longer(query, passage, room)
            for query, passage in zip(queries, passages, strict=True)
        ]
        queries, passages = [a for a, _ in pairs], [b for _, b in pairs]
        return pack_rows(vocabulary, queries, task.max_seq_length, passages)
    room = task.max_query_length - 2  # For [CLS] and [SEP].
    queries = [pieces[:room] for pieces in queries]
    # Truncate the passage to the room that the query leaves. Truncating the longer text
    # first, as for sentence pairs, could cut off the question.
    passages = [
        pieces[: task.max_seq_length - record_module.NUM_SPECIAL_OF_PAIR - len(query)]
        for query, pieces in zip(queries, passages, strict=True)
    ]
    return pack_rows(vocabulary, queries, task.max_seq_length, passages)


def _by_example(
    columns: Mapping[str, np.ndarray], shape: tuple[int, ...]
) -> dict[str, np.ndarray]:
    """Returns columns [B * C, S] as [B, C, S]."""
    return {
        name: column.reshape(*shape, column.shape[-1])
        for name, column in columns.items()
    }
