"""A trained retrieval model, ready to rank, from nothing but its run folder."""

import functools
import os
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import encoding
from bert_tf.tasks.retrieval import passage_index
from bert_tf.tasks.retrieval import predictions
from bert_tf.tasks.retrieval import ranking
from bert_tf.tasks.retrieval import task as retrieval_task

TOP_K = 10


def load(run_dir: str) -> "BiEncoderPredictor | CrossEncoderPredictor":
    """Returns the predictor of a run folder, by the kind of model in it."""
    task = retrieval_task.Task.read(run_dir)
    if task.is_bi_encoder:
        return BiEncoderPredictor(run_dir, task)
    return CrossEncoderPredictor(run_dir, task)


class BiEncoderPredictor(fine_tuning_predictor.Predictor):
    """A bi-encoder with the passages that its run evaluated or predicted with.

    See `fine_tuning.predictor.Predictor`.

    Attributes:
        retriever: `ranking.Retriever`.
    """

    task: retrieval_task.Task

    def __init__(self, run_dir: str, task: retrieval_task.Task):
        super().__init__(run_dir, task)
        embeddings = fine_tuning_predictor.compiled(
            lambda features: self.model(features)["embeddings"],
            ("input_ids", "input_mask"),
        )
        self.encoder = encoding.TextEncoder(
            functools.partial(fine_tuning_predictor.apply_in_parts, embeddings),
            self.tokenizer,
            task,
        )
        self.retriever = ranking.Retriever(
            self.model,
            self.encoder,
            task=task,
            vocabulary=self.vocabulary,
            checkpoint=self.checkpoint,
        )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 [N, H], a vector of length 1 for each passage.

        The dot product of two of them is their cosine.

        Raises:
            ValueError: `texts` is no list of texts.
        """
        blocks = list(self.encoder.passages(_texts(texts)))
        return np.concatenate([np.zeros((0, self.config.hidden_size), "f4"), *blocks])

    def predict(
        self, queries: Sequence[str], *, top_k: int = TOP_K
    ) -> list[dict[str, Any]]:
        """Returns the best passages of each query.

        Args:
            queries: list of texts.
            top_k: passages of each.

        Returns:
            For each a dict: `query`; `passages`, a list of dicts `id`, `score` (the
            cosine), `text`, the best one first.

        Raises:
            OSError: the run's passages cannot be read.
            ValueError: `queries` is no list of texts, or the run has no passages yet.
        """
        queries = _texts(queries)
        corpus, index = self._passages
        if not queries:
            return []
        found = self.retriever.rank(queries, index, top_k)
        return [
            predictions.ranking(
                query, numbers, scores, ids=corpus.ids, passages=corpus.passages
            )
            for query, numbers, scores in zip(
                queries, found.numbers, found.scores, strict=True
            )
        ]

    @functools.cached_property
    def _passages(self):
        """The run's corpus and its vectors, recomputed if the weights changed."""
        path = os.path.join(self.run_dir, passage_index.PASSAGES_FILE)
        if not files.exists(path):
            raise ValueError(
                f"{self.run_dir} holds no passages; run it once with --corpus_file and "
                "--do_eval or --do_predict."
            )
        corpus = corpus_module.read_corpus(path)
        return corpus, self.retriever.index(corpus, self.run_dir)


class CrossEncoderPredictor(fine_tuning_predictor.Predictor):
    """A cross-encoder; see `fine_tuning.predictor.Predictor`."""

    task: retrieval_task.Task

    def __init__(self, run_dir: str, task: retrieval_task.Task):
        super().__init__(run_dir, task)
        logits = fine_tuning_predictor.compiled(
            lambda features: self.model(features)["logits"]
        )
        self.scorer = encoding.PairScorer(
            functools.partial(fine_tuning_predictor.apply_in_parts, logits),
            self.tokenizer,
            task,
        )

    def predict(
        self, inputs: Iterable[tuple[str, Sequence[str]]]
    ) -> list[dict[str, Any]]:
        """Returns the passages of each query in the model's order.

        Args:
            inputs: list of (query, passages): a text, and a list of texts.

        Returns:
            For each a dict: `query`; `passages`, a list of dicts `id` (the place in
            the list, from 0, as text), `score`, `text`, the best one first.

        Raises:
            ValueError: an input is something else.
        """
        answers = []
        for query, passages in _split(inputs):
            scores = self.scorer.scores([query] * len(passages), passages)
            order = np.argsort(-scores, kind="stable")
            ids = [str(place) for place in range(len(passages))]
            answers.append(
                predictions.ranking(
                    query, order, scores[order], ids=ids, passages=passages
                )
            )
        return answers


def _texts(texts):
    if isinstance(texts, str):
        raise ValueError("Expected a list of texts, got one string.")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"Input {index} is {text!r:.60}; expected a text.")
    return texts


def _split(inputs):
    """Returns the list of (query, list of passages), checked."""
    if isinstance(inputs, str):
        raise ValueError("Expected a list of (query, passages), got one string.")
    found = []
    for index, item in enumerate(inputs):
        is_pair = isinstance(item, tuple | list) and len(item) == 2
        if not is_pair or not isinstance(item[1], tuple | list):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected (query, passages): a text "
                "and a list of texts."
            )
        query, *passages = _texts([item[0], *item[1]])
        found.append((query, passages))
    return found
