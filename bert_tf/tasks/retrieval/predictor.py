"""Applies a retrieval model, loaded from its run folder or a checkpoint."""

import dataclasses
import functools
import os
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import ranking
from bert_tf.tasks.retrieval import record as record_module
from bert_tf.tasks.retrieval import search as search_module

TOP_K = 10
_ENCODER = "encoder"  # Task in a task.json that a conversion wrote.


def load(
    run_dir: str,
    settings: fine_tuning_predictor.LoadSettings = (
        fine_tuning_predictor.DEFAULT_SETTINGS
    ),
    *,
    searches: bool = False,
) -> "TextEmbedder | CrossEncoderPredictor":
    """Returns the predictor for the kind of model in a folder.

    Args:
        run_dir: `output_dir` of a training run, or the path of a checkpoint.
        settings: how to load the model.
        searches: see `load_checkpoint`.

    Raises:
        OSError: a file of the folder cannot be read.
        ValueError: the folder has no trained retrieval model.
    """
    kind = companion_files.read_task(run_dir).get("task", _ENCODER)
    if settings.start is None and kind == _ENCODER:
        start = starting_point.find(run_dir)
        settings = dataclasses.replace(settings, start=start, has_task_file=False)
    if not settings.has_task_file:
        return load_checkpoint(run_dir, settings, searches=searches)
    task = record_module.Record.read(run_dir)
    if task.is_bi_encoder:
        return BiEncoderPredictor(run_dir, task, settings=settings)
    return CrossEncoderPredictor(run_dir, task, settings=settings)


def load_checkpoint(
    path: str,
    settings: fine_tuning_predictor.LoadSettings,
    *,
    searches: bool = False,
) -> "TextEmbedder | CrossEncoderPredictor":
    """Returns the predictor of an encoder or ranker that is not a run.

    An encoder treats queries and passages alike unless the checkpoint has prompts for
    them.

    Args:
        path: the checkpoint, for messages.
        settings: has the opened checkpoint.
        searches: whether vectors are compared by their dot product. False: they have
            the length that the checkpoint says, or 1.

    Raises:
        ValueError: the checkpoint lacks weights; it is used for searches but does not
            say how it is pooled; or it is a ranker and `pooling` is set.
    """
    text, pooling = settings.source.text, settings.pooling
    is_ranker = text.output_activation is not None
    if is_ranker and pooling is not None:
        raise ValueError(
            f"pooling is {pooling}, but {path} scores pairs of texts; omit the setting."
        )
    if searches and not is_ranker and not pooling and not text.pooling:
        raise ValueError(
            f"{path} does not say how the vectors of a text are pooled; expected the "
            "output_dir of a training run, or a folder of sentence-transformers."
        )
    values = settings.task_values()
    task = record_module.Record(
        model=retrieval_options.BI_ENCODER,
        max_query_length=values["max_seq_length"],
        **values,
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
        return CrossEncoderPredictor(path, task, settings=settings)
    is_unit = text.normalize is not False
    task = dataclasses.replace(
        task,
        pooling=pooling or text.pooling or rankers.DEFAULT_POOLING,
        temperature=rankers.DEFAULT_TEMPERATURE,
        normalize=record_module.is_cosine(text, path) if searches else is_unit,
    )
    return EncoderPredictor(path, task, settings=settings)


def answer(
    query: str,
    numbers: np.ndarray,
    scores: np.ndarray,
    *,
    ids: Sequence[str],
    passages: Sequence[str],
) -> dict[str, Any]:
    """Returns the prediction for one query.

    Args:
        query: the query.
        numbers: int [K], indices of its passages in the corpus, best first.
        scores: float32 [K], their scores.
        ids: the ids of all passages of the corpus.
        passages: the texts of all passages of the corpus.

    Returns:
        `query`, and `passages`: a list of dicts with `id`, `score` and `text`, best
        first.
    """
    found = [
        {"id": ids[number], "score": float(score), "text": passages[number]}
        for number, score in zip(numbers, scores, strict=True)
    ]
    return {"query": query, "passages": found}


class RetrievalPredictor(fine_tuning_predictor.Predictor):
    """The base of the predictors of retrieval; `load` chooses one of them."""

    RECORD = record_module.Record

    task: record_module.Record

    @classmethod
    def load(
        cls,
        run_dir: str,
        settings: fine_tuning_predictor.LoadSettings = (
            fine_tuning_predictor.DEFAULT_SETTINGS
        ),
    ) -> Any:
        """See `Predictor.load`."""
        return load(run_dir, settings)


class TextEmbedder(RetrievalPredictor):
    """A model that embeds texts; see `fine_tuning.predictor.Predictor`.

    Attributes:
        encoder: embeds texts.
        retriever: searches a corpus.
    """

    def __init__(
        self,
        run_dir: str,
        task: record_module.Record,
        *,
        settings: fine_tuning_predictor.LoadSettings = (
            fine_tuning_predictor.DEFAULT_SETTINGS
        ),
    ):
        super().__init__(run_dir, task, settings=settings)
        embeddings = self._compiled(
            lambda features: self.model(features)["embeddings"],
            ("input_ids", "input_mask"),
        )
        self.encoder = ranking.TextEncoder(
            functools.partial(self._applied, embeddings),
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

    def embed(
        self,
        texts: Iterable[str],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> np.ndarray:
        """Returns a vector for each text, float32 [N, H].

        Vectors have length 1, so that their dot product is their cosine, unless the run
        or checkpoint uses an external encoder that says otherwise.

        Args:
            texts: N passages.
            progress: see `bert_tf.progress`.

        Raises:
            ValueError: `texts` is not an iterable of texts.
        """
        texts = _texts(texts)
        # The longest texts come first, so that a lack of memory shows at once. Each
        # block is tokenized in one call and computed in batches of similar length.
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        vectors = np.zeros((len(texts), self.config.hidden_size), np.float32)
        if texts:
            progress("predict", 0, len(texts), unit="texts")
        done = 0
        for block in self.encoder.passages([texts[index] for index in order]):
            vectors[order[done : done + len(block)]] = block
            done += len(block)
            progress("predict", done, len(texts), unit="texts")
        return vectors


class BiEncoderPredictor(TextEmbedder):
    """A trained bi-encoder with the corpus of its run."""

    _index: search_module.PassageIndex | None = None

    def index(
        self,
        corpus_file: str,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> None:
        """Stores passages with their vectors in the run, for `predict` to search.

        Args:
            corpus_file: the passages; see `examples.read_corpus`.
            progress: see `bert_tf.progress`.

        Raises:
            OSError: a file cannot be read or written.
            ValueError: the file contains no passages.
        """
        corpus = examples_module.read_corpus(corpus_file)
        self._index = self.retriever.index(corpus, self.run_dir, progress=progress)
        self._corpus = corpus

    def predict(
        self,
        queries: Iterable[str],
        *,
        top_k: int = TOP_K,
        progress: progress_module.Progress = progress_module.silent,
    ) -> list[dict[str, Any]]:
        """Returns the best passages of each query.

        Args:
            queries: texts.
            top_k: number of passages per query.
            progress: see `bert_tf.progress`.

        Returns:
            A dict for each query: `query`, and `passages`: a list of dicts with `id`,
            `score` (see `embed`) and `text`, best first.

        Raises:
            OSError: the run's passages cannot be read.
            ValueError: an input is not a text, or the run has no passages yet.
        """
        top_k = fine_tuning_predictor.checked_count(top_k, "top_k")
        queries = _texts(queries)
        if not queries:
            return []
        corpus = self._corpus
        if self._index is None:
            self._index = self.retriever.index(corpus, self.run_dir, progress=progress)
        found = self.retriever.rank(queries, self._index, top_k, progress=progress)
        return [
            answer(query, numbers, scores, ids=corpus.ids, passages=corpus.passages)
            for query, numbers, scores in zip(
                queries, found.numbers, found.scores, strict=True
            )
        ]

    @functools.cached_property
    def _corpus(self) -> examples_module.Corpus:
        """The passages of the run."""
        path = os.path.join(self.run_dir, search_module.PASSAGES_FILE)
        if not files.exists(path):
            raise ValueError(
                f"{self.run_dir} has no passages yet; start the run once with "
                "--corpus_file and --do_eval or --do_predict, or use embed()."
            )
        return examples_module.read_corpus(path)


class EncoderPredictor(TextEmbedder):
    """An encoder without a run: it has no passages, so `predict` returns vectors."""

    def predict(
        self,
        texts: Iterable[str],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> list[dict[str, Any]]:
        """Returns `{"embedding": float32 [H]}` for each text; see `embed`.

        Raises:
            ValueError: `texts` is not an iterable of texts.
        """
        return [{"embedding": v} for v in self.embed(texts, progress=progress)]


class CrossEncoderPredictor(RetrievalPredictor):
    """A trained cross-encoder.

    See `fine_tuning.predictor.Predictor`.

    Attributes:
        scorer: scores pairs of a query and a passage.
    """

    uses_pooler = True

    def __init__(
        self,
        run_dir: str,
        task: record_module.Record,
        *,
        settings: fine_tuning_predictor.LoadSettings = (
            fine_tuning_predictor.DEFAULT_SETTINGS
        ),
    ):
        super().__init__(run_dir, task, settings=settings)
        logits = self._compiled(lambda features: self.model(features)["logits"])
        self.scorer = ranking.PairScorer(
            functools.partial(self._applied, logits),
            self.tokenizer,
            task,
        )

    def predict(
        self,
        inputs: Iterable[tuple[str, Sequence[str]]],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> list[dict[str, Any]]:
        """Returns the passages of each query, ranked, or the scores of pairs.

        Args:
            inputs: (query, passages), a text and a list of texts; or pairs of texts.
            progress: see `bert_tf.progress`.

        Returns:
            A dict for each query: `query`, and `passages`: a list of dicts with `id`
            (the index in the given list, as text), `score` and `text`, best first. For
            a pair of texts `{"score": ...}`.

        Raises:
            ValueError: an input has another form.
        """
        items = _split(inputs)
        pairs = [(query, passage) for query, own, _ in items for passage in own]
        scores = iter(self._answered(pairs, self._scores, progress=progress))
        answers = []
        for query, passages, is_pair in items:
            own = np.array([next(scores) for _ in passages], np.float32)
            if is_pair:
                answers.append({"score": float(own[0])})
                continue
            order = np.argsort(-own, kind="stable")
            ids = [str(place) for place in range(len(passages))]
            answers.append(answer(query, order, own[order], ids=ids, passages=passages))
        return answers

    def _scores(self, pairs):
        return self.scorer.scores(*map(list, zip(*pairs, strict=True)))


def _texts(texts: Iterable[str]) -> list[str]:
    """Returns a list of texts, checked."""
    items = input_items.read(texts, "a list of texts")
    for index, text in enumerate(items):
        if not isinstance(text, str):
            raise ValueError(f"Input {index} is {text!r:.60}; expected a text.")
    return items


def _split(inputs: Iterable[Any]) -> list[tuple[str, list[str], bool]]:
    """Returns the query and passages of each input, and whether it is a pair."""
    found = []
    items = input_items.read(inputs, "a list of (query, passages)")
    for index, item in enumerate(items):
        is_pair = isinstance(item, tuple | list) and len(item) == 2
        if not is_pair or not isinstance(item[1], tuple | list | str):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected (query, passages): a text "
                "and a list of texts, or a pair of texts."
            )
        is_single = isinstance(item[1], str)
        passages = [item[1]] if is_single else item[1]
        query, *passages = _texts([item[0], *passages])
        found.append((query, passages, is_single))
    return found
