"""A trained model, ready to rank, from nothing but its run folder."""

import functools
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints import loading
from bert_tf.fine_tuning import run_files
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import encoding
from bert_tf.tasks.retrieval import passage_index
from bert_tf.tasks.retrieval import predictions
from bert_tf.tasks.retrieval import ranking
from bert_tf.tasks.retrieval import run_setup
from bert_tf.tokenization import in_graph

ROWS_PER_CALL = 32
TOP_K = 10


def load(run_dir: str):
    """Returns a `TrainedBiEncoder` or a `TrainedCrossEncoder` of a run folder.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no trained model of this kind.
    """
    if run_setup.read_task(run_dir).is_bi_encoder:
        return TrainedBiEncoder(run_dir)
    return TrainedCrossEncoder(run_dir)


class _Trained:
    """The last checkpoint of a training run, and all that its model needs."""

    _columns = ()
    _output = ""

    def __init__(self, run_dir: str):
        self.run_dir = run_dir
        self.task = run_setup.read_task(run_dir)
        self.config = run_files.read_config(run_dir)
        self.vocabulary = run_files.read_vocabulary(run_dir)
        self.config.check_vocabulary_size(len(self.vocabulary))
        self.tokenizer = in_graph.InGraphTokenizer(
            self.vocabulary, do_lower_case=self.task.do_lower_case
        )
        self.model = self.task.create_model(self.config)
        self.model.build()
        self.checkpoint = loading.load_run(self.model, run_dir)
        self._outputs = tf.function(
            lambda features: self.model(features)[self._output],
            input_signature=[
                {name: tf.TensorSpec([None, None], tf.int32) for name in self._columns}
            ],
        )

    def _apply(self, packed):
        """Returns the model's outputs for sorted rows, in parts of like length."""
        rows = []
        for start in range(0, len(packed["input_ids"]), ROWS_PER_CALL):
            part = {n: c[start : start + ROWS_PER_CALL] for n, c in packed.items()}
            longest = int(np.max(np.sum(part["input_mask"], axis=1)))
            rows.append(self._outputs({n: c[:, :longest] for n, c in part.items()}))
        return np.concatenate(rows)


class TrainedBiEncoder(_Trained):
    """A bi-encoder with the passages that its run evaluated or predicted with.

    Args:
        run_dir: `output_dir` of a training run.

    Attributes:
        task: `retrieval.task.Task`.
        config: `BertConfig`.
        vocabulary: `Vocabulary`.
        tokenizer: `InGraphTokenizer`.
        model: `BertBiEncoder`.
        retriever: `rankers.Retriever`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no trained bi-encoder.
    """

    _columns = ("input_ids", "input_mask")
    _output = "embeddings"

    def __init__(self, run_dir: str):
        super().__init__(run_dir)
        self.encoder = encoding.TextEncoder(self._apply, self.tokenizer, self.task)
        self.retriever = ranking.Retriever(
            self.model,
            self.encoder,
            task=self.task,
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

    def predict(self, queries: Sequence[str], *, top_k: int = TOP_K) -> list[dict]:
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
        """The run's corpus and its vectors, made anew where the weights are others."""
        path = os.path.join(self.run_dir, passage_index.PASSAGES_FILE)
        if not files.exists(path):
            raise ValueError(
                f"{self.run_dir} holds no passages; run it once with --corpus_file and "
                "--do_eval or --do_predict."
            )
        corpus = corpus_module.read_corpus(path)
        return corpus, self.retriever.index(corpus, self.run_dir)


class TrainedCrossEncoder(_Trained):
    """A cross-encoder.

    Args:
        run_dir: `output_dir` of a training run.

    Attributes:
        task, config, vocabulary, tokenizer: as of `TrainedBiEncoder`.
        model: `BertCrossEncoder`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no trained cross-encoder.
    """

    _columns = ("input_ids", "input_mask", "segment_ids")
    _output = "logits"

    def __init__(self, run_dir: str):
        super().__init__(run_dir)
        self.scorer = encoding.PairScorer(self._apply, self.tokenizer, self.task)

    def predict(self, inputs) -> list[dict]:
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
