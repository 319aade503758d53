"""Texts to the word pieces and columns that the models read."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import examples as examples_module

# Enough for the in-graph tokenizer to be busy, little enough for a moving bar.
TEXTS_PER_CALL = 1024
NO_PASSAGE = -2  # Fills up `positive_ids`; no passage has it.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingData:
    """Examples as numbers: texts once each, as pieces, and who belongs to whom."""

    queries: tuple[list[int], ...]  # Ids of the pieces of each example's query.
    passages: tuple[list[int], ...]  # Ids of the pieces of each passage, once each.
    passage_ids: np.ndarray  # int32 [N]: each example's passage, a place in `passages`.
    positives: tuple[frozenset[int], ...]  # All right passages of each query.
    negatives: tuple[tuple[int, ...], ...]  # Those given, places in `passages`.

    @property
    def max_negatives(self) -> int:
        """The most negatives that an example gives."""
        return max(map(len, self.negatives))


def convert_examples_to_features(
    examples: Sequence[examples_module.RankingExample],
    tokenizer,
    *,
    corpus: corpus_module.Corpus | None = None,
    progress: progress_module.Progress = progress_module.silent,
) -> TrainingData:
    """Returns examples as numbers.

    Equal passages have one number, whichever rows and files they are from, and rows of
    one query share their right passages.

    Args:
        examples: N examples with passages.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        corpus: more passages, to draw negatives from; None: there are none.
        progress: told how many texts are done.
    """
    numbers: dict[str, int] = {}
    texts: list[str] = []

    def number_of(text):
        number = numbers.setdefault(corpus_module.key(text), len(texts))
        if number == len(texts):
            texts.append(text)
        return number

    passage_ids = [number_of(example.passage) for example in examples]
    negatives = [tuple(map(number_of, example.negatives)) for example in examples]
    for text in corpus.passages if corpus else ():
        number_of(text)
    right: dict[str, set[int]] = {}
    for example, number in zip(examples, passage_ids, strict=True):
        right.setdefault(corpus_module.key(example.query), set()).add(number)
    positives = [right[corpus_module.key(example.query)] for example in examples]
    pieces = token_ids(
        tokenizer, [*(example.query for example in examples), *texts], progress=progress
    )
    return TrainingData(
        queries=tuple(pieces[: len(examples)]),
        passages=tuple(pieces[len(examples) :]),
        passage_ids=np.array(passage_ids, np.int32),
        positives=tuple(map(frozenset, positives)),
        # What is right by another row is no negative.
        negatives=tuple(
            tuple(number for number in own if number not in known)
            for own, known in zip(negatives, positives, strict=True)
        ),
    )


def token_ids(
    tokenizer,
    texts: Sequence[str],
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> list[list[int]]:
    """Returns the ids of each text's pieces, in parts that keep a bar moving."""
    found = []
    for start in range(0, len(texts), TEXTS_PER_CALL):
        found += packing.token_ids(tokenizer, texts[start : start + TEXTS_PER_CALL])
        progress("tokenize", len(found), len(texts), unit="texts")
    return found


def pack_rows(
    vocabulary, pieces: Sequence, max_seq_length: int, pieces_b: Sequence | None = None
) -> dict[str, np.ndarray]:
    """Returns `input_ids`, `input_mask`, `segment_ids`: int32 [B, S].

    Args:
        vocabulary: `Vocabulary`.
        pieces: ids of the pieces of B texts.
        max_seq_length: S; what is longer is cut, of a pair the longer text first.
        pieces_b: those of B second texts, or None.
    """
    rows = [
        packing.pack_pair(
            a,
            b,
            max_seq_length=max_seq_length,
            cls=vocabulary.cls_id,
            sep=vocabulary.sep_id,
        )
        for a, b in zip(pieces, pieces_b or [None] * len(pieces), strict=True)
    ]
    return packing.padded_features(rows, max_seq_length)
