"""Ranks a run's corpus with the model in training, on the devices of the run."""

import typing
from collections.abc import Callable
from collections.abc import Sequence

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.modeling import heads
from bert_tf.tasks.retrieval import encoding
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import predictor as retrieval_predictor
from bert_tf.tasks.retrieval import ranking
from bert_tf.tasks.retrieval import run_setup
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.training import evaluation as training_evaluation
from bert_tf.training import loop


class CorpusRanking:
    """Ranks the passages of a run's corpus with the current weights of its model.

    Args:
        trainer: contains model, step and devices.
        setup: setup of the run.
        options: options of the run.
        create_tokenizer: returns the tokenizer; called only if something is ranked.
        progress: see `bert_tf.progress`.
    """

    def __init__(
        self,
        trainer: loop.Trainer,
        setup: run_setup.RunSetup,
        options: retrieval_options.RunRetrievalOptions,
        create_tokenizer: Callable[[], typing.Any],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self._trainer = trainer
        self._setup = setup
        self._options = options
        self._create_tokenizer = create_tokenizer
        self._progress = progress
        self._evaluation = training_evaluation.Evaluation(
            trainer.model,
            trainer.strategy,
            options,
            length_buckets=options.length_buckets,
        )
        self._candidates: dict[tuple[str, ...], search_module.Neighbors] = {}

    def rank(self, queries: Sequence[str], top_k: int) -> search_module.Neighbors:
        """Returns the passages of each query, best first.

        Args:
            queries: N queries.
            top_k: number of passages that a bi-encoder finds. A cross-encoder ranks
                and returns all its candidates.

        Raises:
            OSError, ValueError: as for `candidates`.
        """
        if self._setup.task.is_bi_encoder:
            return self._retrieve(self._retriever(), queries, top_k)
        scorer = encoding.PairScorer(
            self._applied("logits"), self._create_tokenizer(), self._setup.task
        )
        return ranking.rerank(
            scorer,
            queries,
            self.candidates(queries),
            self._setup.require_corpus().passages,
            progress=self._progress,
        )

    def candidates(self, queries: Sequence[str]) -> search_module.Neighbors:
        """Returns the passages that the bi-encoder of `retrieve_with` finds.

        They do not change during the run, so they are computed once per set of queries.

        Raises:
            OSError: the bi-encoder's run cannot be read.
            ValueError: `retrieve_with` is not the run of a bi-encoder.
        """
        queries = tuple(queries)
        if queries not in self._candidates:
            path = self._options.retrieve_with or ""
            found = retrieval_predictor.load(path, searches=True)
            if isinstance(found, retrieval_predictor.CrossEncoderPredictor):
                raise ValueError(
                    f"--retrieve_with={self._options.retrieve_with} is the run of a "
                    "cross_encoder; expected the run of a bi_encoder."
                )
            self._candidates[queries] = self._retrieve(
                found.retriever, queries, self._options.num_candidates
            )
        return self._candidates[queries]

    def _retriever(self) -> ranking.Retriever:
        encoder = encoding.TextEncoder(
            self._applied("embeddings"), self._create_tokenizer(), self._setup.task
        )
        step, options = self._trainer.step, self._options
        start = str(options.init_checkpoint)
        return ranking.Retriever(
            typing.cast(heads.TaskModel, self._trainer.model),
            encoder,
            task=self._setup.task,
            vocabulary=self._setup.vocabulary,
            checkpoint=f"step {step} of {options.output_dir}" if step else start,
        )

    def _retrieve(
        self, retriever: ranking.Retriever, queries: Sequence[str], top_k: int
    ) -> search_module.Neighbors:
        index = retriever.index(
            self._setup.require_corpus(),
            self._options.output_dir,
            progress=self._progress,
        )
        return retriever.rank(
            queries,
            index,
            top_k,
            search=self._options.search,
            progress=self._progress,
        )

    def _applied(self, key: str) -> encoding.Apply:
        """Returns a function from features to the model's output of that name."""
        return lambda packed: self._evaluation.predict(
            batching.ArraySource(packed), keys=(key,)
        )[key]
