"""The whole task on one page: train, evaluate, predict, report."""

import dataclasses
import functools
import logging
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import workflow as fine_tuning_workflow
from bert_tf.tasks.retrieval import card
from bert_tf.tasks.retrieval import corpus_ranking
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import predictions
from bert_tf.tasks.retrieval import run_setup
from bert_tf.tasks.retrieval import scores
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.tasks.retrieval import source as retrieval_source
from bert_tf.tokenization import in_graph
from bert_tf.training import estimates
from bert_tf.training import plot_data
from bert_tf.training import run_folder

logger = logging.getLogger(__name__)

# Prefix of the bi-encoder's scores, which show what the cross-encoder gained.
RETRIEVED = "eval_retrieved_"


def run(
    options: retrieval_options.RunRetrievalOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Trains, evaluates and predicts as the options say.

    Args:
        options: `retrieval.options.RunRetrievalOptions`.
        progress: see `bert_tf.progress`.

    Returns:
        A report for the user.

    Raises:
        ValueError, OSError: a file is missing or damaged, or options, data and
            checkpoint contradict each other.
        ImportError: `options.search` needs a package that is not installed.
    """
    with run_folder.locked(options):
        task_run = Retrieval(options, progress=progress)
        return fine_tuning_workflow.run(task_run, options)


def train(
    options: retrieval_options.RunRetrievalOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Trains; returns {"loss", "global_step"}. See `run`."""
    options = fine_tuning_workflow.only_training(options)
    with run_folder.locked(options):
        return Retrieval(options, progress=progress).train()


def evaluate(
    options: retrieval_options.RunRetrievalOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns the content of eval_results.txt."""
    options = fine_tuning_workflow.only_evaluation(options)
    return Retrieval(options, progress=progress).evaluate()


class Retrieval:
    """Data and model of one run, checked against each other.

    All files are read before the model is built, so that a mistake in any of them is
    found before training.

    Args:
        options: `retrieval.options.RunRetrievalOptions`.
        progress: see `bert_tf.progress`.
    """

    def __init__(
        self,
        options: retrieval_options.RunRetrievalOptions,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self.progress = progress
        self.setup = run_setup.prepare(options, progress=progress)
        self.task = self.setup.task
        options = dataclasses.replace(
            options,
            max_query_length=self.task.max_query_length,
            max_seq_length=self.task.max_seq_length,
        )
        self.options = options
        self.examples = self.setup.examples
        self.trainer = fine_tuning_workflow.create_trainer(
            self.setup,
            options,
            self._num_train_steps(),
            score_names=self.score_names,
            prediction_flag="eval_batch_size",
            progress=progress,
        )
        self._train_facts: tuple[str, ...] = ()
        self._ranking = corpus_ranking.CorpusRanking(
            self.trainer,
            self.setup,
            options,
            lambda: self._tokenizer,
            progress=progress,
        )

    def score_names(self) -> list[str]:
        """Returns the names of all scores of an evaluation."""
        names = scores.names_of(self.options.recall_at)
        if not self.task.is_bi_encoder:
            names += scores.names_of(self.options.recall_at, RETRIEVED)
        return names

    def train(self) -> dict[str, float]:
        """Trains to the last step; returns {"loss", "global_step"}."""
        self._log_depth()
        training_source = self.source()
        reached = fine_tuning_workflow.train(
            self.trainer,
            self.setup,
            self.options,
            lambda: self._logged(training_source),
            counts={
                "Num examples": len(self.examples["train"]),
                "Num negatives": self._num_negatives,
            },
            evaluate=lambda: self._eval_scores()[0],
        )
        self._write_card(training=self.trainer.facts(), training_data=self._train_facts)
        lengths = self._training_data.passage_lengths(self.task)
        found = plot_data.lengths(lengths, self.task.max_seq_length)
        plot_data.update(self.trainer.folder, {"lengths": found})
        return reached

    def evaluate(self) -> dict[str, float]:
        """Evaluates, writes eval_results.txt and returns its scores."""
        if not self.options.do_train:
            self._log_depth()
        self.trainer.folder.create()
        scores_found, firsts = self._eval_scores()
        results = fine_tuning_workflow.write_results(
            self.trainer, scores_found, self.setup.data_sets["dev"]
        )
        self._write_card(results=results, firsts=firsts)
        self._write_baselines()
        return results

    def predict(self) -> list[str]:
        """Ranks passages for the test queries; returns lines of the report."""
        self.trainer.folder.create()
        queries = [example.query for example in self.examples["test"]]
        top_k = self.options.top_k
        found = self._ranking.rank(queries, top_k)
        corpus = self.setup.require_corpus()
        rankings = [
            predictions.ranking(
                query,
                numbers[:top_k],
                own_scores[:top_k],
                ids=corpus.ids,
                passages=corpus.passages,
            )
            for query, numbers, own_scores in zip(
                queries, found.numbers, found.scores, strict=True
            )
        ]
        path = predictions.write_predictions(
            self.options.output_dir,
            self.examples["test"],
            rankings,
            suffix=self.trainer.folder.suffix_of(
                self.setup.predictions_file, self.setup.data_sets["test"]
            ),
        )
        return [f"Predictions are in {path}."]

    def dry_run_report(self) -> str:
        """Returns an estimate of the training's memory and time."""
        estimate = estimates.estimate(
            self.trainer,
            sequence_length=self.task.max_seq_length,
            sequences_per_example=self.options.sequences_per_example(
                self._num_negatives
            ),
        )
        return str(estimate)

    def source(self) -> retrieval_source.RankingSource:
        """Returns the training examples as a source of batches."""
        return retrieval_source.RankingSource(
            self._training_data,
            self.task,
            self.setup.vocabulary,
            num_negatives=self._num_negatives,
            seed=self.options.random_seed,
        )

    def _logged(
        self, source: retrieval_source.RankingSource
    ) -> retrieval_source.RankingSource:
        """Logs how long the training texts are; returns the source."""
        self._train_facts = self._training_data.length_facts(self.task)
        for fact in self._train_facts:
            logger.info("  %s", fact)
        return source

    def _write_card(self, **known: Any) -> None:
        model_card.write(
            self.trainer.folder, card.card_of(self.options, self.setup, **known)
        )

    def _write_baselines(self) -> None:
        """Writes the scores of a random order, for the plots and the report."""
        found = scores.scores_by_chance(
            len(set(self.setup.require_corpus().numbers)),
            list(self._relevant_passages().values()),
            self.options.recall_at,
        )
        baselines = {
            name: plot_data.baseline("random order", value)
            for name, value in found.items()
        }
        plot_data.update(
            self.trainer.folder, {"baselines": baselines}, self.setup.data_sets["dev"]
        )

    def _relevant_passages(self) -> dict[str, set[int]]:
        """Returns the relevant passages of each query."""
        corpus = self.setup.require_corpus()
        right: dict[str, set[int]] = {}
        for example in self.examples["dev"]:
            number = corpus.number_of_text(example.require_passage())
            right.setdefault(example.query, set()).add(number)
        return right

    def _eval_scores(self) -> tuple[dict[str, float], dict[str, int]]:
        """Returns the scores, and the index of each query's first passage."""
        right = self._relevant_passages()
        queries, positives = list(right), list(right.values())
        ks = self.options.recall_at
        found = self._ranking.rank(queries, max(*ks, scores.MRR_DEPTH))
        results = scores.all_scores(self._by_text(found), positives, ks)
        if not self.task.is_bi_encoder:
            retrieved = self._by_text(self._ranking.candidates(queries))
            results |= scores.all_scores(retrieved, positives, ks, prefix=RETRIEVED)
        return results, dict(zip(queries, found.numbers[:, 0].tolist(), strict=True))

    def _log_depth(self) -> None:
        """Logs which scores are limited by the candidates of a cross-encoder."""
        if self.task.is_bi_encoder or not self.options.evaluates:
            return
        num_candidates = self.options.num_candidates
        num_passages = len(self.setup.require_corpus().passages)
        depths = {f"recall_at_{k}": k for k in self.options.recall_at}
        depths["mrr"] = scores.MRR_DEPTH
        limited = [
            name
            for name, depth in depths.items()
            if min(depth, num_passages) > num_candidates
        ]
        if limited:
            logger.warning(
                "Only --num_candidates=%d passages per query are ranked; these scores "
                "depend on it: %s.",
                num_candidates,
                ", ".join(limited),
            )

    def _by_text(self, found: search_module.Neighbors) -> list[list[int]]:
        """Returns rankings in which passages with the same text have one number."""
        return np.asarray(self.setup.require_corpus().numbers)[found.numbers].tolist()

    @property
    def _num_negatives(self) -> int:
        return self.options.negatives_per_query(
            lambda: self._training_data.max_negatives
        )

    def _num_train_steps(self) -> int:
        if "train" not in self.examples:
            return 0
        return fine_tuning_workflow.num_train_steps(
            len(self.examples["train"]), self.options
        )

    @functools.cached_property
    def _training_data(self) -> features.TrainingData:
        return features.convert_examples_to_features(
            self.examples["train"],
            self._tokenizer,
            corpus=self.setup.corpus,
            query_prompt=self.task.query_prompt,
            passage_prompt=self.task.passage_prompt,
            progress=self.progress,
        )

    @functools.cached_property
    def _tokenizer(self) -> in_graph.InGraphTokenizer:
        return in_graph.InGraphTokenizer(
            self.setup.vocabulary, **self.task.tokenizer_arguments()
        )
