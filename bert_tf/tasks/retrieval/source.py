"""Training examples as a source of batches, with negatives drawn for each step."""

import numpy as np
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import schema as schema_module
from bert_tf.tasks.retrieval import features

NUM_SPECIAL_OF_PAIR = 3  # [CLS], and [SEP] after each text.


class RankingSource(batching.Source):
    """Queries with their right passage and some wrong ones.

    The wrong ones are first those that the example gives, a random choice where there
    are more than are wanted, and then passages drawn from all there are. What is drawn
    is a function of (seed, step, example), so that no run depends on how often it was
    killed or on how it was spread.

    Args:
        data: `features.TrainingData`.
        task: `task.Task`.
        vocabulary: `Vocabulary`.
        num_negatives: wrong passages of each query.
        seed: fixes what is drawn.

    Attributes:
        num_examples: rows there are.
        columns: tuple of `schema.Column`.

    Raises:
        ValueError: a query has no wrong passage to draw.
    """

    def __init__(self, data, task, vocabulary, *, num_negatives, seed):
        self._data = data
        self._task = task
        self._vocabulary = vocabulary
        self._num_negatives = num_negatives
        self._seed = seed
        self.num_examples = len(data.queries)
        self._most_positives = max(map(len, data.positives))
        if num_negatives and self._most_positives == len(data.passages):
            raise ValueError(
                f"All {len(data.passages)} passages answer one query, so there is no "
                "wrong one to draw for it; give more passages as --corpus_file."
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

    def rows_at_step(self, step, indices, num_rows):
        """Returns the rows of a training step; see `batching.Source`."""
        values = tf.numpy_function(
            lambda *arguments: list(self._rows(*arguments).values()),
            [step, indices],
            [tf.int32] * len(self._shapes),
        )
        return {
            name: tf.ensure_shape(value, [num_rows, *shape])
            for (name, shape), value in zip(self._shapes.items(), values, strict=True)
        }

    def row_lengths(self) -> np.ndarray:
        """Returns int64 [N], the places that each right passage uses."""
        return np.array(
            [
                min(len(self._data.passages[number]) + 2, self._task.max_seq_length)
                for number in self._data.passage_ids
            ]
        )

    def candidates(self, step: int, indices: np.ndarray) -> np.ndarray:
        """Returns int32 [B, 1 + num_negatives]: the right passage, then wrong ones.

        Args:
            step: of the training.
            indices: int64 [B], numbers of the examples.
        """
        found = np.empty((len(indices), 1 + self._num_negatives), np.int32)
        for place, index in enumerate(indices):
            found[place, 0] = self._data.passage_ids[index]
            found[place, 1:] = self._negatives(step, int(index))
        return found

    def _negatives(self, step, index):
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

    def _rows(self, step, indices):
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

    def _rows_of_texts(self, indices, candidates):
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


def pack_pairs(vocabulary, queries, passages, task):
    """Returns the columns of pairs, int32 [B, S]; of a query its beginning is kept.

    Args:
        vocabulary: `Vocabulary`.
        queries: ids of the pieces of B queries.
        passages: those of B passages.
        task: `task.Task`; of it max_query_length and max_seq_length.
    """
    room = task.max_query_length - 2  # For [CLS] and [SEP].
    queries = [pieces[:room] for pieces in queries]
    # A passage gives way before its query does: it is the longer one in the room left.
    passages = [
        pieces[: task.max_seq_length - NUM_SPECIAL_OF_PAIR - len(query)]
        for query, pieces in zip(queries, passages, strict=True)
    ]
    return features.pack_rows(vocabulary, queries, task.max_seq_length, passages)


def _by_example(columns, shape):
    return {
        name: column.reshape(*shape, column.shape[-1])
        for name, column in columns.items()
    }
