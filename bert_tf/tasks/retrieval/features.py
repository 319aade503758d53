"""Queries and passages as word pieces, and training batches with drawn negatives.

Shape letters: B batch, C candidates, S sequence, N examples.
"""

import dataclasses
import typing
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.checkpoints import text_encoding
from bert_tf.data import batching
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tokenization import vocabulary as vocabulary_module

# Large enough for an efficient tokenizer call, small enough for smooth progress.
TEXTS_PER_CALL = 1024
NO_PASSAGE = -2  # Pads `positive_ids`; not the number of any passage.
NUM_SPECIAL_OF_PAIR = 3  # [CLS], and a [SEP] after each text.
# Names of prompts, in the order in which sentence-transformers looks for them.
_QUERY_PROMPTS = ("query",)
_PASSAGE_PROMPTS = ("document", "passage", "corpus")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(task_record.TaskRecord):
    """How to apply a retrieval model to new texts: the content of task.json.

    `max_seq_length` limits a passage or, for a cross-encoder, a query with a passage.
    Fields that also exist in `TextEncoding` have the same names, so that they are read
    when the run's folder is opened as a checkpoint.
    """

    KIND = "retrieval"

    model: str  # One of `options.MODELS`.
    max_query_length: int  # In word pieces, including [CLS] and [SEP].
    # None for a cross-encoder.
    pooling: str | None = None
    normalize: bool = True  # Whether a bi-encoder's vectors have length 1.
    # See `TextEncoding`.
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    default_prompt_name: str | None = None
    output_activation: str | None = None  # Of a cross-encoder's score.
    # Whether the longer text of a pair is truncated (`packing.truncate_longer`),
    # instead of always the passage.
    longer_keeps_more: bool = False

    @property
    def query_prompt(self) -> str:
        """The text that is put before a query."""
        return self._prompt(_QUERY_PROMPTS if self.is_bi_encoder else ())

    @property
    def passage_prompt(self) -> str:
        """The text that is put before a passage; a pair only has the query's."""
        return self._prompt(_PASSAGE_PROMPTS) if self.is_bi_encoder else ""

    @property
    def is_bi_encoder(self) -> bool:
        """Whether the model embeds queries and passages separately."""
        return self.model == retrieval_options.BI_ENCODER

    @property
    def num_special(self) -> int:
        """The special tokens in the row of a passage."""
        return 2 if self.is_bi_encoder else NUM_SPECIAL_OF_PAIR

    @property
    def num_segments(self) -> int:
        """See `TaskRecord.num_segments`."""
        return 1 if self.is_bi_encoder else 2

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> heads.TaskModel:
        """See `TaskRecord.create_model`."""
        if not self.is_bi_encoder:
            return rankers.BertCrossEncoder(config, dtype=dtype)
        return rankers.BertBiEncoder(
            config,
            pooling=typing.cast(str, self.pooling),
            normalize=self.normalize,
            dtype=dtype,
        )

    def _prompt(self, names: Sequence[str]) -> str:
        encoding = text_encoding.TextEncoding(
            prompts=self.prompts, default_prompt_name=self.default_prompt_name
        )
        return encoding.prompt(names)


def is_cosine(text: text_encoding.TextEncoding, path: str) -> bool:
    """Returns whether a search has to scale an encoder's vectors to length 1.

    A search computes dot products. At length 1 they are cosines, whatever length the
    encoder's own vectors have.

    Raises:
        ValueError: the encoder compares vectors by a distance.
    """
    similarity = text.similarity or text_encoding.COSINE
    if similarity not in (text_encoding.COSINE, text_encoding.DOT):
        raise ValueError(
            f"{path} compares vectors by their {similarity} distance, but a search "
            "here uses the cosine or the dot product; train it first (--do_train)."
        )
    return similarity == text_encoding.COSINE or bool(text.normalize)


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

    def length_facts(self, task: Record) -> tuple[str, ...]:
        """Returns sentences about truncated queries and relevant passages."""
        queries = np.array(list(map(len, self.queries)))
        room = task.max_query_length - 2
        of_queries = text_checks.truncation(
            queries, room=room, limit=f"--max_query_length={task.max_query_length}"
        )
        # The row of a cross-encoder has the query as well.
        passages = np.array([len(self.passages[i]) for i in self.passage_ids])
        if not task.is_bi_encoder:
            passages = passages + np.minimum(queries, room)
        of_passages = text_checks.truncation(
            passages,
            room=task.max_seq_length - task.num_special,
            limit=f"--max_seq_length={task.max_seq_length}",
        )
        suffix = "" if task.is_bi_encoder else " with their queries"
        return (
            f"Of the training queries, {of_queries}.",
            f"Of the training passages{suffix}, {of_passages}.",
        )


def convert_examples_to_features(
    examples: Sequence[examples_module.RankingExample],
    tokenizer: Any,
    *,
    corpus: examples_module.Corpus | None = None,
    query_prompt: str = "",
    passage_prompt: str = "",
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
    """
    # Number and text of the first passage with each key.
    passages: dict[str, tuple[int, str]] = {}

    def number_of(text: str) -> int:
        key = examples_module.key(text)
        return passages.setdefault(key, (len(passages), text))[0]

    passage_ids = [number_of(example.passage) for example in examples]
    negatives = [tuple(map(number_of, example.negatives)) for example in examples]
    for text in corpus.passages if corpus else ():
        number_of(text)
    relevant: dict[str, set[int]] = {}
    for example, number in zip(examples, passage_ids, strict=True):
        relevant.setdefault(examples_module.key(example.query), set()).add(number)
    positives = [relevant[examples_module.key(example.query)] for example in examples]
    prompted = [f"{query_prompt}{example.query}" for example in examples]
    prompted += [f"{passage_prompt}{text}" for _, text in passages.values()]
    pieces: list[list[int]] = []
    for start in range(0, len(prompted), TEXTS_PER_CALL):
        pieces += packing.token_ids(tokenizer, prompted[start : start + TEXTS_PER_CALL])
        progress_module.report("tokenize", len(pieces), len(prompted), unit="texts")
    return TrainingData(
        queries=tuple(pieces[: len(examples)]),
        passages=tuple(pieces[len(examples) :]),
        passage_ids=np.array(passage_ids, np.int32),
        positives=tuple(map(frozenset, positives)),
        # A passage that another row gives as right is not a negative.
        negatives=tuple(
            tuple(number for number in wrong if number not in right)
            for wrong, right in zip(negatives, positives, strict=True)
        ),
    )


class RankingSource(batching.ComputedSource):
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

    Raises:
        ValueError: all passages are right for one query, so none can be drawn.

    Source: in-batch negatives: section 3.2 of "Dense Passage Retrieval" (Karpukhin et
    al., 2020).
    """

    def __init__(
        self,
        data: TrainingData,
        task: Record,
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
        self._most_positives = max(map(len, data.positives))
        if num_negatives and self._most_positives == len(data.passages):
            raise ValueError(
                f"All {len(data.passages)} passages answer one query, so there are no "
                "negatives to draw; add passages with --corpus_file."
            )
        sample = self._rows(0, np.zeros(1, np.int64))
        super().__init__(self._rows, num_examples=len(data.queries), sample=sample)

    def rows_at_step(
        self, step: tf.Tensor, indices: tf.Tensor, places: range
    ) -> dict[str, tf.Tensor]:
        """See `batching.Source`."""
        return self.computed([step, indices], len(places))

    def row_lengths(self) -> np.ndarray:
        """Returns the pieces of each example's relevant passage, int64 [N]."""
        lengths = [len(self._data.passages[i]) + 2 for i in self._data.passage_ids]
        return np.minimum(lengths, self._task.max_seq_length)

    def candidates(self, step: int, indices: np.ndarray) -> np.ndarray:
        """Returns int32 [B, 1 + num_negatives]: the relevant passage, then wrong ones.

        `indices` are those of the examples, int64 [B].
        """
        numbers = [
            [self._data.passage_ids[index], *self._negatives(step, int(index))]
            for index in indices
        ]
        return np.array(numbers, np.int32).reshape(-1, 1 + self._num_negatives)

    def _negatives(self, step, index):
        random = np.random.default_rng([self._seed, step, index])
        listed = self._data.negatives[index]
        if len(listed) > self._num_negatives:
            return random.choice(listed, self._num_negatives, replace=False)
        chosen = list(listed)
        while len(chosen) < self._num_negatives:
            number = int(random.integers(len(self._data.passages)))
            if number not in self._data.positives[index]:
                chosen.append(number)
        return chosen

    def _rows(self, step, indices):
        """Returns the columns of a batch, [B, ...]."""
        data, task = self._data, self._task
        candidates = self.candidates(int(step), indices)  # [B, C]
        queries = [data.queries[index] for index in indices]
        passages = [data.passages[number] for number in candidates.ravel()]
        if not task.is_bi_encoder:
            repeated = [query for query in queries for _ in candidates[0]]
            rows = pack_pairs(self._vocabulary, task, repeated, passages)
            return _by_example(rows, candidates.shape)
        packed = packing.pack_ids(self._vocabulary, queries, task.max_query_length)
        rows = packing.pack_ids(self._vocabulary, passages, task.max_seq_length)
        rows = _by_example(rows, candidates.shape)
        positive_ids = np.full(
            (len(indices), self._most_positives), NO_PASSAGE, np.int32
        )
        for row, index in zip(positive_ids, indices, strict=True):
            row[: len(data.positives[index])] = sorted(data.positives[index])
        return {
            "query_input_ids": packed["input_ids"],
            "query_input_mask": packed["input_mask"],
            "input_ids": rows["input_ids"],
            "input_mask": rows["input_mask"],
            "passage_ids": candidates,
            "positive_ids": positive_ids,
        }


def pack_pairs(
    vocabulary: vocabulary_module.Vocabulary,
    task: Record,
    queries: Sequence[Sequence[int]],
    passages: Sequence[Sequence[int]],
) -> dict[str, np.ndarray]:
    """Returns the features of pairs, int32 [B, S], for a cross-encoder.

    Args:
        vocabulary: supplies the special tokens.
        task: its max_query_length and max_seq_length limit query and pair.
        queries: word piece ids of B queries.
        passages: word piece ids of B passages.
    """
    length = task.max_seq_length
    if task.longer_keeps_more:
        truncate_pair = packing.truncate_longer
    else:
        # Truncate the passage to the room that the query leaves. Truncating the longer
        # text first, as for sentence pairs, could cut off the question.
        queries = [query[: task.max_query_length - 2] for query in queries]

        def truncate_pair(query, passage, room):
            # A query as long as the row is truncated as sentence pairs are.
            limit = max(room - len(query), 0) or len(passage)
            return packing.truncate_pair(query, passage[:limit], room)

    return packing.pack_ids(
        vocabulary, queries, length, passages, truncate_pair=truncate_pair
    )


def _by_example(columns, shape):
    """Returns columns [B * C, S] as [B, C, S]."""
    return {
        name: column.reshape(*shape, column.shape[-1])
        for name, column in columns.items()
    }
