"""Loads a trained retrieval model from its run folder and predicts with it."""

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
    """Returns the predictor for the kind of model in a run folder.

    Args:
        run_dir: `output_dir` of a training run.

    Raises:
        OSError: a file of the folder cannot be read.
        ValueError: the folder has no trained retrieval model.
    """
    task = retrieval_task.Task.read(run_dir)
    if task.is_bi_encoder:
        return BiEncoderPredictor(run_dir, task)
    return CrossEncoderPredictor(run_dir, task)


class BiEncoderPredictor(fine_tuning_predictor.Predictor):
    """A trained bi-encoder with the corpus of its run.

    See `fine_tuning.predictor.Predictor`.

    Attributes:
        encoder: embeds texts.
        retriever: searches a corpus.
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
        """Returns a vector of length 1 for each text, float32 [N, H].

        The dot product of two vectors is their cosine.

        Args:
            texts: list of N passages.

        Raises:
            ValueError: `texts` is not a list of texts.
        """
        blocks = list(self.encoder.passages(_texts(texts)))
        return np.concatenate([np.zeros((0, self.config.hidden_size), "f4"), *blocks])

    def predict(
        self, queries: Sequence[str], *, top_k: int = TOP_K
    ) -> list[dict[str, Any]]:
        """Returns the best passages of each query.

        Args:
            queries: list of texts.
            top_k: number of passages per query.

        Returns:
            A dict for each query: `query`, and `passages`: a list of dicts with `id`,
            `score` (the cosine) and `text`, best first.

        Raises:
            OSError: the run's passages cannot be read.
            ValueError: `queries` is not a list of texts, or the run has no passages
                yet.
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
    def _passages(self) -> tuple[corpus_module.Corpus, passage_index.PassageIndex]:
        """The run's corpus and its vectors, recomputed if the weights changed."""
        path = os.path.join(self.run_dir, passage_index.PASSAGES_FILE)
        if not files.exists(path):
            raise ValueError(
                f"{self.run_dir} has no passages yet; start the run once with "
                "--corpus_file and --do_eval or --do_predict."
            )
        corpus = corpus_module.read_corpus(path)
        return corpus, self.retriever.index(corpus, self.run_dir)


class CrossEncoderPredictor(fine_tuning_predictor.Predictor):
    """A trained cross-encoder.

    See `fine_tuning.predictor.Predictor`.

    Attributes:
        scorer: scores pairs of a query and a passage.
    """

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
        """Returns the passages of each query, ranked by the model.

        Args:
            inputs: list of (query, passages): a text, and a list of texts.

        Returns:
            A dict for each query: `query`, and `passages`: a list of dicts with `id`
            (the index in the given list, as text), `score` and `text`, best first.

        Raises:
            ValueError: `inputs` is not such a list.
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


def _texts(texts: Iterable[str]) -> list[str]:
    """Returns a list of texts, checked."""
    if isinstance(texts, str):
        raise ValueError("Expected a list of texts, got one string.")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"Input {index} is {text!r:.60}; expected a text.")
    return texts


def _split(
    inputs: Iterable[tuple[str, Sequence[str]]],
) -> list[tuple[str, list[str]]]:
    """Returns a list of (query, passages), checked."""
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
