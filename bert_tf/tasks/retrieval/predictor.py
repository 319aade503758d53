"""Loads a trained retrieval model from its run folder and predicts with it."""

import dataclasses
import functools
import os
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import encoding
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import passage_index
from bert_tf.tasks.retrieval import predictions
from bert_tf.tasks.retrieval import ranking
from bert_tf.tasks.retrieval import task as retrieval_task

TOP_K = 10
_ENCODER = "encoder"  # Task in a task.json that a conversion wrote.
_MAX_SEQ_LENGTH = 128  # If neither the caller nor the checkpoint sets it.


def load(
    run_dir: str, *, searches: bool = False
) -> "BiEncoderPredictor | CrossEncoderPredictor":
    """Returns the predictor for the kind of model in a folder.

    Args:
        run_dir: `output_dir` of a training run, or a folder of sentence-transformers.
        searches: see `load_checkpoint`.

    Raises:
        OSError: a file of the folder cannot be read.
        ValueError: the folder has no trained retrieval model.
    """
    if companion_files.read_task(run_dir).get("task", _ENCODER) == _ENCODER:
        start = starting_point.find(run_dir)
        return load_checkpoint(run_dir, start, searches=searches)
    task = retrieval_task.Task.read(run_dir)
    if task.is_bi_encoder:
        return BiEncoderPredictor(run_dir, task)
    return CrossEncoderPredictor(run_dir, task)


def load_checkpoint(
    path: str,
    start: starting_point.StartingPoint,
    *,
    pooling: str | None = None,
    max_seq_length: int | None = None,
    searches: bool = False,
) -> "BiEncoderPredictor | CrossEncoderPredictor":
    """Returns the predictor of a sentence encoder or ranker that is not a run.

    Args:
        path: the checkpoint, for messages.
        start: the opened checkpoint.
        pooling: of an encoder; None: as the checkpoint says.
        max_seq_length: None: as the checkpoint says, or 128.
        searches: whether vectors are compared by their dot product. False: they have
            the length that the checkpoint says, or 1.

    Raises:
        ValueError: the checkpoint lacks weights, does not say how it is pooled, or is a
            ranker and `pooling` is given.
    """
    text = cast(source_module.Source, start.source).text
    is_ranker = text.output_activation is not None
    if is_ranker and pooling is not None:
        raise ValueError(
            f"--pooling={pooling}, but {path} scores pairs of texts; omit the flag."
        )
    if not is_ranker and not pooling and not text.pooling:
        raise ValueError(
            f"{path} does not say how the vectors of a text are pooled; expected the "
            "output_dir of a training run, or a folder of sentence-transformers."
        )
    length = max_seq_length or text.max_seq_length or _MAX_SEQ_LENGTH
    start.config.check_sequence_length(length)
    task = retrieval_task.Task(
        model=retrieval_options.BI_ENCODER,
        max_query_length=length,
        max_seq_length=length,
        **start.tokenizer_arguments(),
        prompts=dict(text.prompts),
        default_prompt_name=text.default_prompt_name,
    )
    if is_ranker:
        task = dataclasses.replace(
            task,
            model=retrieval_options.CROSS_ENCODER,
            output_activation=text.output_activation,
            longer_keeps_more=True,
        )
        return CrossEncoderPredictor(path, task, start=start)
    is_unit = text.normalize is not False
    task = dataclasses.replace(
        task,
        pooling=pooling or text.pooling,
        temperature=rankers.DEFAULT_TEMPERATURE,
        normalize=retrieval_task.is_cosine(text, path) if searches else is_unit,
    )
    return BiEncoderPredictor(path, task, start=start)


class BiEncoderPredictor(fine_tuning_predictor.Predictor):
    """A trained bi-encoder with the corpus of its run.

    See `fine_tuning.predictor.Predictor`.

    Attributes:
        encoder: embeds texts.
        retriever: searches a corpus.
    """

    task: retrieval_task.Task

    def __init__(
        self,
        run_dir: str,
        task: retrieval_task.Task,
        *,
        start: starting_point.StartingPoint | None = None,
    ):
        super().__init__(run_dir, task, start=start)
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
        """Returns a vector for each text, float32 [N, H].

        Vectors have length 1, so that their dot product is their cosine, unless the run
        uses an external encoder that compares by dot product.

        Args:
            texts: list of N passages.

        Raises:
            ValueError: `texts` is not a list of texts.
        """
        blocks = list(self.encoder.passages(_texts(texts)))
        return np.concatenate([np.zeros((0, self.config.hidden_size), "f4"), *blocks])

    def index(
        self,
        corpus_file: str,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> None:
        """Stores passages with their vectors in the run, for `predict` to search.

        Args:
            corpus_file: the passages; see `corpus.read_corpus`.
            progress: see `bert_tf.progress`.

        Raises:
            OSError: a file cannot be read or written.
            ValueError: the file contains no passages.
        """
        corpus = corpus_module.read_corpus(corpus_file)
        self.retriever.index(corpus, self.run_dir, progress=progress)
        self.__dict__.pop("_passages", None)  # Read again at the next prediction.

    def predict(
        self, queries: Sequence[str], *, top_k: int = TOP_K
    ) -> list[dict[str, Any]]:
        """Returns the best passages of each query.

        Args:
            queries: list of texts.
            top_k: number of passages per query.

        Returns:
            A dict for each query: `query`, and `passages`: a list of dicts with `id`,
            `score` (see `embed`) and `text`, best first.

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

    def __init__(
        self,
        run_dir: str,
        task: retrieval_task.Task,
        *,
        start: starting_point.StartingPoint | None = None,
    ):
        super().__init__(run_dir, task, start=start)
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
