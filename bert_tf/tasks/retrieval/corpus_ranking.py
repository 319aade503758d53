"""A run's rankings: its own model, on its own devices, over its corpus."""

from collections.abc import Callable
from collections.abc import Sequence

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.tasks.retrieval import encoding
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import predictor as retrieval_predictor
from bert_tf.tasks.retrieval import ranking
from bert_tf.tasks.retrieval import run_setup
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.training import evaluation as training_evaluation
from bert_tf.training import loop


class CorpusRanking:
    """Ranks the passages of a run's corpus by the weights that its model has now.

    Args:
        trainer: `loop.Trainer`.
        setup: of the run, with a corpus.
        options: of the run.
        create_tokenizer: function without arguments that returns the tokenizer.
        progress: see `bert_tf.progress`.
    """

    def __init__(
        self,
        trainer: loop.Trainer,
        setup: run_setup.RunSetup,
        options: retrieval_options.RunRetrievalOptions,
        create_tokenizer: Callable,
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
        self._candidates: dict[tuple[str, ...], search_module.Neighbours] = {}

    def rank(self, queries: Sequence[str], top_k: int) -> search_module.Neighbours:
        """Returns the passages of N queries, the best one first.

        Args:
            queries: the texts.
            top_k: how many are found; a cross-encoder ranks all its candidates.

        Raises:
            OSError, ValueError: the bi-encoder's run cannot be read or is none.
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

    def candidates(self, queries: Sequence[str]) -> search_module.Neighbours:
        """Returns what the bi-encoder of `retrieve_with` finds; asked again, the same.

        Raises:
            OSError, ValueError: its run cannot be read, or is of another model.
        """
        queries = tuple(queries)
        if queries not in self._candidates:
            found = retrieval_predictor.load(self._options.retrieve_with or "")
            if not isinstance(found, retrieval_predictor.BiEncoderPredictor):
                raise ValueError(
                    f"--retrieve_with={self._options.retrieve_with} is a run of a "
                    "cross_encoder; expected one of a bi_encoder."
                )
            self._candidates[queries] = self._retrieve(
                found.retriever, queries, self._options.num_candidates
            )
        return self._candidates[queries]

    def _retriever(self):
        encoder = encoding.TextEncoder(
            self._applied("embeddings"), self._create_tokenizer(), self._setup.task
        )
        step, options = self._trainer.step, self._options
        start = str(options.init_checkpoint)
        return ranking.Retriever(
            self._trainer.model,
            encoder,
            task=self._setup.task,
            vocabulary=self._setup.vocabulary,
            checkpoint=f"step {step} of {options.output_dir}" if step else start,
        )

    def _retrieve(self, retriever, queries, top_k):
        index = retriever.index(
            self._setup.corpus, self._options.output_dir, progress=self._progress
        )
        return retriever.rank(
            queries,
            index,
            top_k,
            search=self._options.search,
            progress=self._progress,
        )

    def _applied(self, key):
        """Returns a function from columns to the output of that name."""
        return lambda packed: self._evaluation.predict(
            batching.ArraySource(packed), keys=(key,)
        )[key]
