"""Applies a retrieval model, loaded from its run folder or a checkpoint."""

import dataclasses
import functools
import os
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import search as search_module

_ENCODER = "encoder"  # Task in a task.json that a conversion wrote.


def _record_of_checkpoint(path, settings, *, searches):
    """Returns the record of an encoder or ranker without a run.

    Queries and passages are treated alike unless the checkpoint has prompts for them.
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
        return features.Record(
            model=retrieval_options.CROSS_ENCODER,
            output_activation=text.output_activation,
            longer_keeps_more=True,
            **values,
        )
    is_unit = text.normalize is not False
    return features.Record(
        model=retrieval_options.BI_ENCODER,
        pooling=pooling or text.pooling or rankers.DEFAULT_POOLING,
        normalize=features.is_cosine(text, path) if searches else is_unit,
        **values,
    )


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
        *,
        searches: bool = False,
    ) -> Any:
        """Returns the predictor for the kind of model in a folder.

        Args:
            run_dir: `output_dir` of a training run, or the path of a checkpoint.
            settings: how to load the model.
            searches: whether the vectors of an encoder without a run are compared by
                their dot product. False: they have the length that the checkpoint
                says, or 1.

        Raises:
            OSError: a file of the folder cannot be read.
            ValueError: the folder has no trained retrieval model; or an encoder without
                a run lacks weights, is used for searches and does not say how it is
                pooled, or is a ranker and `pooling` is set.
        """
        if settings.start is None:
            kind = companion_files.read_task(run_dir).get("task", _ENCODER)
            if kind == _ENCODER:
                start = starting_point.find(run_dir)
                settings = dataclasses.replace(
                    settings, start=start, has_task_file=False
                )
        if settings.has_task_file:
            task = features.Record.read(run_dir)
        else:
            task = _record_of_checkpoint(run_dir, settings, searches=searches)
        if not task.is_bi_encoder:
            return CrossEncoderPredictor(run_dir, task, settings=settings)
        kind = BiEncoderPredictor if settings.has_task_file else EncoderPredictor
        return kind(run_dir, task, settings=settings)


class EncoderPredictor(RetrievalPredictor):
    """An encoder without a run: it has no passages, so `predict` returns vectors."""

    @functools.cached_property
    def retriever(self) -> search_module.Retriever:
        """Embeds texts and searches a corpus."""
        embeddings = self._compiled(
            lambda batch: self.model(batch)["embeddings"], ("input_ids", "input_mask")
        )
        return search_module.Retriever(
            functools.partial(self._applied, embeddings), self.tokenizer, self.task
        )

    def predict(self, texts: Iterable[str]) -> list[dict[str, Any]]:
        """Returns `{"embedding": float32 [H]}` for each text; see `embed`."""
        return [{"embedding": v} for v in self.embed(texts)]

    def embed(self, texts: Iterable[str]) -> np.ndarray:
        """Returns a vector for each text, float32 [N, H].

        Vectors have length 1, so that their dot product is their cosine, unless the run
        or checkpoint uses an external encoder that says otherwise.

        Args:
            texts: N passages.

        Raises:
            ValueError: `texts` is not an iterable of texts.
        """
        texts = _texts(texts)
        # The longest texts come first, so that a lack of memory shows at once. Each
        # block is tokenized in one call and computed in batches of similar length.
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        vectors = np.zeros((len(texts), self.config.hidden_size), np.float32)
        done = 0
        ordered = [texts[index] for index in order]
        for block in self.retriever.passages(ordered, unit="texts"):
            vectors[order[done : done + len(block)]] = block
            done += len(block)
        self._warn_of_unknown()
        return vectors


class BiEncoderPredictor(EncoderPredictor):
    """A trained bi-encoder with the corpus of its run."""

    def index(self, corpus_file: str) -> None:
        """Copies passages into the run, for `predict` to search.

        Args:
            corpus_file: the passages; see `examples.read_corpus`.

        Raises:
            OSError: a file cannot be read or written.
            ValueError: the file contains no passages.
        """
        corpus = examples_module.read_corpus(corpus_file)
        search_module.write_passages(self.run_dir, corpus)
        self.__dict__.pop("_indexed", None)

    def predict(
        self,
        queries: Iterable[str],
        *,
        top_k: int = 10,
    ) -> list[dict[str, Any]]:
        """Returns the best passages of each query.

        Args:
            queries: texts.
            top_k: number of passages per query.

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
        corpus, vectors = self._indexed
        best = search_module.search(self.retriever.queries(queries), vectors, top_k)
        self._warn_of_unknown()
        return [
            answer(*ranking, corpus)
            for ranking in zip(queries, best.numbers, best.scores, strict=True)
        ]

    @functools.cached_property
    def _indexed(self) -> tuple[examples_module.Corpus, np.ndarray]:
        """The passages of the run and their vectors, float32 [M, H].

        They are computed once per process.
        """
        path = os.path.join(self.run_dir, search_module.PASSAGES_FILE)
        if not files.exists(path):
            raise ValueError(
                f"{self.run_dir} has no passages yet; start the run once with "
                "--corpus_file and --do_eval or --do_predict, or use embed()."
            )
        corpus = examples_module.read_corpus(path)
        return corpus, self.retriever.corpus(corpus.passages)


class CrossEncoderPredictor(RetrievalPredictor):
    """A cross-encoder: `{"score": float}` for each pair (query, passage)."""

    uses_pooler = True

    def items(self, inputs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """See `Predictor.items`."""
        items = given_data.read(inputs, "a list of (query, passage)")
        for index, item in enumerate(items):
            is_pair = isinstance(item, tuple | list) and len(item) == 2
            if not is_pair or not all(isinstance(text, str) for text in item):
                raise ValueError(
                    f"Input {index} is {item!r:.60}; expected (query, passage), two "
                    "texts."
                )
        return items

    def answers(self, items: Sequence[tuple[str, str]]) -> list[dict[str, float]]:
        """See `Predictor.answers`."""
        queries, passages = map(list, zip(*items, strict=True))
        apply = functools.partial(self._applied, self.apply)
        scores = search_module.score_pairs(
            apply, self.tokenizer, self.task, queries, passages
        )
        return [{"score": float(score)} for score in scores]


def _texts(texts: Iterable[str]) -> list[str]:
    """Returns a list of texts, checked."""
    items = given_data.read(texts, "a list of texts")
    for index, text in enumerate(items):
        if not isinstance(text, str):
            raise ValueError(f"Input {index} is {text!r:.60}; expected a text.")
    return items
