"""Training batches of queries and passages, with negatives drawn at every step."""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import packing
from bert_tf.data import schema as schema_module
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import task as retrieval_task
from bert_tf.tokenization import vocabulary as vocabulary_module

NUM_SPECIAL_OF_PAIR = 3  # [CLS], and a [SEP] after each text.


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
        data: features.TrainingData,
        task: retrieval_task.Task,
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
        queries = features.pack_rows(
            self._vocabulary,
            [data.queries[index] for index in indices],
            task.max_query_length,
        )
        passages = features.pack_rows(
            self._vocabulary,
            [data.passages[number] for number in candidates.ravel()],
            task.max_seq_length,
        )
        passages = _by_example(passages, candidates.shape)
        positive_ids = np.full(
            (len(indices), self._most_positives), features.NO_PASSAGE, np.int32
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
    task: retrieval_task.Task,
) -> dict[str, np.ndarray]:
    """Returns the features of pairs, int32 [B, S], for a cross-encoder.

    Args:
        vocabulary: supplies the special tokens.
        queries: word piece ids of B queries.
        passages: word piece ids of B passages.
        task: its max_query_length and max_seq_length limit query and pair.
    """
    if task.longer_keeps_more:
        room = task.max_seq_length - NUM_SPECIAL_OF_PAIR
        pairs = [
            packing.truncate_longer(query, passage, room)
            for query, passage in zip(queries, passages, strict=True)
        ]
        queries, passages = [a for a, _ in pairs], [b for _, b in pairs]
        return features.pack_rows(vocabulary, queries, task.max_seq_length, passages)
    room = task.max_query_length - 2  # For [CLS] and [SEP].
    queries = [pieces[:room] for pieces in queries]
    # Truncate the passage to the room that the query leaves. Truncating the longer text
    # first, as for sentence pairs, could cut off the question.
    passages = [
        pieces[: task.max_seq_length - NUM_SPECIAL_OF_PAIR - len(query)]
        for query, pieces in zip(queries, passages, strict=True)
    ]
    return features.pack_rows(vocabulary, queries, task.max_seq_length, passages)


def _by_example(
    columns: Mapping[str, np.ndarray], shape: tuple[int, ...]
) -> dict[str, np.ndarray]:
    """Returns columns [B * C, S] as [B, C, S]."""
    return {
        name: column.reshape(*shape, column.shape[-1])
        for name, column in columns.items()
    }
