"""Applies a retrieval model, loaded from its run folder or a checkpoint."""

import dataclasses
import functools
import os
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import starting_point
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import output_activation
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import options as retrieval_options
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
    if settings.start is None:
        kind = companion_files.read_task(run_dir).get("task", _ENCODER)
        if kind == _ENCODER:
            start = starting_point.find(run_dir)
            settings = dataclasses.replace(settings, start=start, has_task_file=False)
    if not settings.has_task_file:
        return load_checkpoint(run_dir, settings, searches=searches)
    task = features.Record.read(run_dir)
    predictor = BiEncoderPredictor if task.is_bi_encoder else CrossEncoderPredictor
    return predictor(run_dir, task, settings=settings)


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
    values |= {
        "max_query_length": values["max_seq_length"],
        "prompts": dict(text.prompts),
        "default_prompt_name": text.default_prompt_name,
    }
    if is_ranker:
        task = features.Record(
            model=retrieval_options.CROSS_ENCODER,
            output_activation=text.output_activation,
            longer_keeps_more=True,
            **values,
        )
        return CrossEncoderPredictor(path, task, settings=settings)
    is_unit = text.normalize is not False
    task = features.Record(
        model=retrieval_options.BI_ENCODER,
        pooling=pooling or text.pooling or rankers.DEFAULT_POOLING,
        normalize=features.is_cosine(text, path) if searches else is_unit,
        **values,
    )
    return EncoderPredictor(path, task, settings=settings)


def answer(
    query: str, numbers: np.ndarray, scores: np.ndarray, corpus: examples_module.Corpus
) -> dict[str, Any]:
    """Returns the prediction for one query.

    Args:
        query: the query.
        numbers: int [K], indices of its passages in the corpus, best first.
        scores: float32 [K], their scores.
        corpus: the passages.

    Returns:
        `query`, and `passages`: a list of dicts with `id`, `score` and `text`, best
        first.
    """
    best = [
        {"id": corpus.ids[i], "score": float(score), "text": corpus.passages[i]}
        for i, score in zip(numbers, scores, strict=True)
    ]
    return {"query": query, "passages": best}


def score_pairs(
    apply: search_module.Apply,
    tokenizer: Any,
    task: features.Record,
    queries: Sequence[str],
    passages: Sequence[str],
) -> np.ndarray:
    """Returns a cross-encoder's scores of N pairs, float32 [N].

    Args:
        apply: from `input_ids`, `input_mask`, `segment_ids`, int32 [B, S], to float32
            [B].
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        task: the task of the cross-encoder.
        queries: N queries.
        passages: N passages.
    """
    blocks = [np.zeros(0, np.float32)]
    lengths: list[int] = []
    queries = search_module.with_prompt(queries, task.query_prompt)
    for start in range(0, len(queries), search_module.TEXTS_PER_BLOCK):
        part = slice(start, start + search_module.TEXTS_PER_BLOCK)
        ids = packing.token_ids(tokenizer, queries[part])
        ids_b = packing.token_ids(tokenizer, passages[part])
        lengths += [len(a) + len(b) for a, b in zip(ids, ids_b, strict=True)]
        packed = features.pack_pairs(tokenizer.vocabulary, ids, ids_b, task)
        blocks.append(search_module.apply_sorted(apply, packed))
        done = min(part.stop, len(queries))
        progress_module.report("score pairs", done, len(queries), unit="pairs")
    limit = task.max_seq_length
    text_checks.warn_of_truncated(
        lengths,
        room=limit - features.NUM_SPECIAL_OF_PAIR,
        limit=f"max_seq_length={limit}",
        inputs="pairs of query and passage",
    )
    scores = output_activation.apply(np.concatenate(blocks), task.output_activation)
    return np.asarray(scores)


class RetrievalPredictor(fine_tuning_predictor.Predictor):
    """The base of the predictors of retrieval; `load` chooses one of them."""

    RECORD = features.Record

    task: features.Record

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
        retriever: embeds texts and searches a corpus.
    """

    def __init__(
        self,
        run_dir: str,
        task: features.Record,
        *,
        settings: fine_tuning_predictor.LoadSettings = (
            fine_tuning_predictor.DEFAULT_SETTINGS
        ),
    ):
        super().__init__(run_dir, task, settings=settings)
        embeddings = self._compiled(
            lambda batch: self.model(batch)["embeddings"], ("input_ids", "input_mask")
        )
        self.retriever = search_module.Retriever(
            self.model,
            functools.partial(self._applied, embeddings),
            self.tokenizer,
            task,
            checkpoint=self.checkpoint,
        )

    def embed(
        self,
        texts: Iterable[str],
        *,
        progress: progress_module.Progress = progress_module.report,
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
        done = 0
        with progress_module.reporting_to(progress):
            for block in self.retriever.passages([texts[index] for index in order]):
                vectors[order[done : done + len(block)]] = block
                done += len(block)
        return vectors


class BiEncoderPredictor(TextEmbedder):
    """A trained bi-encoder with the corpus of its run."""

    _vectors: np.ndarray | None = None  # Of the passages, float32 [M, H].

    def index(
        self,
        corpus_file: str,
        *,
        progress: progress_module.Progress = progress_module.report,
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
        with progress_module.reporting_to(progress):
            self._vectors = self.retriever.index(corpus, self.run_dir)
        self._corpus = corpus

    def predict(
        self,
        queries: Iterable[str],
        *,
        top_k: int = TOP_K,
        progress: progress_module.Progress = progress_module.report,
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
        with progress_module.reporting_to(progress):
            if self._vectors is None:
                self._vectors = self.retriever.index(corpus, self.run_dir)
            best = self.retriever.rank(queries, self._vectors, top_k)
        return [
            answer(*ranking, corpus)
            for ranking in zip(queries, best.numbers, best.scores, strict=True)
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
        progress: progress_module.Progress = progress_module.report,
    ) -> list[dict[str, Any]]:
        """Returns `{"embedding": float32 [H]}` for each text; see `embed`."""
        return [{"embedding": v} for v in self.embed(texts, progress=progress)]


class CrossEncoderPredictor(RetrievalPredictor):
    """A trained cross-encoder; see `fine_tuning.predictor.Predictor`.

    Its inputs are (query, passages), a text and a list of texts, or pairs of texts. Its
    answers have `query` and `passages`: a list of dicts with `id` (the index in the
    list of the input, as text), `score` and `text`, best first. The answer to a pair of
    texts is `{"score": ...}`.
    """

    uses_pooler = True

    def outputs(self, features: Mapping[str, Any]) -> Any:
        """See `Predictor.outputs`."""
        return self.model(features)["logits"]

    def predict(
        self,
        inputs: Iterable[tuple[str, Sequence[str]]],
        *,
        progress: progress_module.Progress = progress_module.report,
    ) -> list[dict[str, Any]]:
        """Returns the passages of each query, ranked, or the scores of pairs.

        Raises:
            ValueError: an input has another form.
        """
        items = _divided(inputs)
        pairs = [(query, one) for query, passages, _ in items for one in passages]
        scores = iter(self._answered(pairs, self._scores, progress=progress))
        answers = []
        for query, passages, is_pair in items:
            values = np.array([next(scores) for _ in passages], np.float32)
            if is_pair:
                answers.append({"score": float(values[0])})
                continue
            order = np.argsort(-values, kind="stable")
            ids = tuple(map(str, range(len(passages))))
            candidates = examples_module.Corpus(
                path="", ids=ids, passages=tuple(passages)
            )
            answers.append(answer(query, order, values[order], candidates))
        return answers

    def _scores(self, pairs):
        queries, passages = map(list, zip(*pairs, strict=True))
        apply = functools.partial(self._applied, self.apply)
        return score_pairs(apply, self.tokenizer, self.task, queries, passages)


def _texts(texts: Iterable[str]) -> list[str]:
    """Returns a list of texts, checked."""
    items = input_items.read(texts, "a list of texts")
    for index, text in enumerate(items):
        if not isinstance(text, str):
            raise ValueError(f"Input {index} is {text!r:.60}; expected a text.")
    return items


def _divided(inputs):
    """Returns the query and passages of each input, and whether it is a pair."""
    divided = []
    items = input_items.read(inputs, "a list of (query, passages)")
    for index, item in enumerate(items):
        is_two = isinstance(item, tuple | list) and len(item) == 2
        if not is_two or not isinstance(item[1], tuple | list | str):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected (query, passages): a text "
                "and a list of texts, or a pair of texts."
            )
        is_pair = isinstance(item[1], str)
        query, *passages = _texts([item[0], *([item[1]] if is_pair else item[1])])
        divided.append((query, tuple(passages), is_pair))
    return divided
