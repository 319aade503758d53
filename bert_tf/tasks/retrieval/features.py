"""Converts queries and passages to word pieces, and those to model inputs."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import task as retrieval_task
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

    def length_facts(self, task: retrieval_task.Task) -> tuple[str, ...]:
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

    def passage_lengths(self, task: retrieval_task.Task) -> np.ndarray:
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
    corpus: corpus_module.Corpus | None = None,
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
        number = numbers.setdefault(corpus_module.key(text), len(texts))
        if number == len(texts):
            texts.append(text)
        return number

    passage_ids = [number_of(example.require_passage()) for example in examples]
    negatives = [tuple(map(number_of, example.negatives)) for example in examples]
    for text in corpus.passages if corpus else ():
        number_of(text)
    right: dict[str, set[int]] = {}
    for example, number in zip(examples, passage_ids, strict=True):
        right.setdefault(corpus_module.key(example.query), set()).add(number)
    positives = [right[corpus_module.key(example.query)] for example in examples]
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
