"""The declaration of retrieval: which passages of a corpus answer a query?"""

import dataclasses
import functools
import logging
import typing
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import starting_point
from bert_tf.data import batching
from bert_tf.data import findings as findings_module
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import task as task_module
from bert_tf.modeling import heads
from bert_tf.tasks.retrieval import checks
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import predictor as retrieval_predictor
from bert_tf.tasks.retrieval import ranking
from bert_tf.tasks.retrieval import record as record_module
from bert_tf.tasks.retrieval import scores
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.training import estimates
from bert_tf.training import plot_data
from bert_tf.training import result_files

logger = logging.getLogger(__name__)

# Prefix of the bi-encoder's scores, which show what the cross-encoder gained.
RETRIEVED = "eval_retrieved_"
_SUMMARIES = {
    retrieval_options.BI_ENCODER: (
        "sentence-similarity",
        "Computes one vector per text. The passages whose vectors are nearest to the "
        "vector of a query answer it.",
    ),
    retrieval_options.CROSS_ENCODER: (
        "text-ranking",
        "Reads a query and a passage together and scores how well the passage answers "
        "the query.",
    ),
}


class Retrieval(task_module.Task):
    """Bi-encoders search a corpus; cross-encoders rank what a bi-encoder found."""

    RECORD = record_module.Record
    PREDICTOR = retrieval_predictor.RetrievalPredictor
    # The temperature only affects training.
    FIXED = ("max_query_length", "max_seq_length", "do_lower_case", "pooling")
    PREDICTION_BATCH = "eval_batch_size"

    options: retrieval_options.RunRetrievalOptions
    corpus: examples_module.Corpus | None = None  # None if none was given.

    def paths(self) -> dict[str, str | None]:
        options = self.options
        return {
            "train": options.train_file,
            "dev": options.eval_file,
            "test": options.predict_file,
        }

    def data_sets(self) -> dict[str, result_files.DataSet]:
        """Returns the data of each set, with the corpus to search."""
        corpus = self.options.corpus_file
        return {
            name: result_files.file_data_set(path, *([corpus] if corpus else ()))
            for name, path in self.paths().items()
            if path is not None
        }

    def read_set(
        self, name: str, path: str, *, broken_rows: list[str] | None = None
    ) -> list[examples_module.RankingExample]:
        return examples_module.read_examples(
            path, name, with_passages=name != "test", broken_rows=broken_rows
        )

    def read(self) -> record_module.Record:
        options = self.options
        search_module.check_installed(options.search)
        if self.trained and self.trained.model != options.model:
            raise ValueError(
                f"{options.output_dir} is the run of a {self.trained.model}; use "
                f"--model={self.trained.model}."
            )
        record = typing.cast(record_module.Record, super().read())
        if options.corpus_file is not None:
            self.corpus = examples_module.read_corpus(options.corpus_file)
            self._check_in_corpus(self.examples.get("dev", ()))
        self._check_something_learns()
        self.options = dataclasses.replace(
            options,
            max_query_length=record.max_query_length,
            max_seq_length=record.max_seq_length,
        )
        return record

    def new_record(self) -> record_module.Record:
        return record_module.new_record(self.options, self.start)

    def check_head(self, head: checkpoint_heads.Head) -> None:
        """Refuses to rank with an untrained head; a bi-encoder needs no head."""
        # Every library stores a cross-encoder as a classifier with one output.
        if not self.record.is_bi_encoder and head.num_labels != 1:
            raise ValueError(
                f"{self.options.init_checkpoint} has no head with a single score, so "
                "it was not fine-tuned to rank; train first (--do_train)."
            )

    @property
    def longest_sequence(self) -> int:
        return max(self.record.max_query_length, self.record.max_seq_length)

    def sequences_per_example(self) -> float:
        return self.options.sequences_per_example(self._num_negatives)

    def counts(self) -> dict[str, int]:
        self._warn_of_depth()
        _ = self._source  # Refuses data without negatives before a folder is created.
        return super().counts() | {"Num negatives": self._num_negatives}

    def convert(self, name: str) -> features.TrainingData:
        return features.convert_examples_to_features(
            self.examples[name],
            self.tokenizer,
            corpus=self.corpus,
            query_prompt=self.record.query_prompt,
            passage_prompt=self.record.passage_prompt,
            progress=self.progress,
        )

    def training_data(self) -> task_module.TrainingData:
        data = self.features("train")
        return task_module.TrainingData(
            source=self._source,
            facts=data.length_facts(self.record),
            lengths=data.passage_lengths(self.record),
        )

    def score_names(self) -> list[str]:
        names = scores.names_of(self.options.recall_at)
        if not self.record.is_bi_encoder:
            names += scores.names_of(self.options.recall_at, RETRIEVED)
        return names

    def evaluate(self, predict: task_module.Predict) -> task_module.Evaluation:
        """Returns the scores; the outputs are the first passage of each query."""
        if not self.options.do_train:
            self._warn_of_depth()
        right, ks = self._relevant_passages(), self.options.recall_at
        queries, positives = list(right), list(right.values())
        ranked = self._rank(queries, max(*ks, scores.MRR_DEPTH), predict)
        results = scores.all_scores(self._by_text(ranked), positives, ks)
        if not self.record.is_bi_encoder:
            retrieved = self._by_text(self._candidates(tuple(queries)))
            results |= scores.all_scores(retrieved, positives, ks, prefix=RETRIEVED)
        firsts = dict(zip(queries, ranked.numbers[:, 0].tolist(), strict=True))
        return task_module.Evaluation(scores=results, outputs=firsts)

    def details(self, evaluation: task_module.Evaluation) -> task_module.Details:
        """Returns the queries with a wrong first passage, and scores by chance."""
        corpus, right = self._required_corpus, self._relevant_passages()
        expected: dict[str, str] = {}
        for example in self.examples["dev"]:
            expected.setdefault(example.query, example.require_passage())
        by_chance = scores.scores_by_chance(
            len(set(corpus.numbers)), list(right.values()), self.options.recall_at
        )
        return task_module.Details(
            wrong=[
                model_card.WrongExample(
                    text=query,
                    expected=expected[query],
                    predicted=corpus.passages[number],
                )
                for query, number in evaluation.outputs.items()
                if corpus.numbers[number] not in right[query]
            ],
            num_examples=len(right),
            plots={
                "baselines": {
                    name: plot_data.baseline("random order", value)
                    for name, value in by_chance.items()
                }
            },
        )

    def predict(self, predict: task_module.Predict) -> task_module.Predicted:
        corpus, top_k = self._required_corpus, self.options.top_k
        examples = self.examples["test"]
        queries = [example.query for example in examples]
        ranked = self._rank(queries, top_k, predict)
        records = (
            {"id": example.guid}
            | retrieval_predictor.answer(
                example.query,
                numbers[:top_k],
                values[:top_k],
                ids=corpus.ids,
                passages=corpus.passages,
            )
            for example, numbers, values in zip(
                examples, ranked.numbers, ranked.scores, strict=True
            )
        )
        return task_module.Predicted(
            files={self.predictions_file: task_module.json_lines(records)}
        )

    def card(self) -> model_card.Card:
        pipeline_tag, summary = _SUMMARIES[self.record.model]
        return model_card.Card(
            pipeline_tag=pipeline_tag,
            summary=summary,
            options=self.options,
            data=self.data_files(),
        )

    def data_files(self) -> tuple[model_card.DataFile, ...]:
        files = super().data_files()
        if self.corpus is None:
            return files
        path, count = self.corpus.path, len(self.corpus)
        return (*files, self.data_file("corpus", path, count))

    def check(
        self, start: starting_point.StartingPoint, findings: findings_module.Findings
    ) -> estimates.Workload | None:
        return checks.check(self, start, findings)

    @classmethod
    def give_data(
        cls, run: Any, train: Any, validation: Any, *, corpus: Any = None
    ) -> None:
        """Sets the options of the data; `corpus` has the passages to search."""
        rows = examples_module.given_rows(train)
        held_out: list[dict[str, Any]] = []
        if given_data.is_share(validation):
            texts = [[str(row.get("query"))] for row in rows]
            rows, held_out = run.divided(rows, texts, validation)
            train = None
        elif validation is not None:
            held_out = examples_module.given_rows(validation)
        path = given_data.file_path(train)
        run.values["train_file"] = path or _table(run, rows, "train")
        if validation is not None:
            path = given_data.file_path(validation)
            path = path or _table(run, held_out, "validation")
            run.values |= {"eval_file": path, "do_eval": True}
        path = given_data.file_path(corpus)
        if path is None:
            passages = examples_module.given_passages(corpus, [*rows, *held_out])
            content = given_data.json_lines(passages, ("passage",))
            path = run.add_file(given_data.CORPUS, content, trains=True)
        run.values["corpus_file"] = path

    @classmethod
    def prepare_predictor(cls, predictor: Any, run: Any) -> Any:
        """Indexes the corpus for a bi-encoder, so that `predict` can search it."""
        if run.option("model") == retrieval_options.BI_ENCODER:
            predictor.index(run.values["corpus_file"], progress=run.progress)
        return predictor

    def _check_in_corpus(self, examples):
        """Refuses a passage that is not in the corpus.

        No search could find it, so the scores would be too low without any warning.
        """
        for example in examples:
            if not self._required_corpus.has(example.require_passage()):
                raise ValueError(
                    f"{example.place}: the passage of {example.guid!r} is not in "
                    f"{self._required_corpus.path}; add it, or remove the query."
                )

    def _check_something_learns(self):
        """Refuses to freeze all layers of a bi-encoder, which has no other weights."""
        frozen, num_layers = (
            self.options.frozen_layers,
            self.start.config.num_hidden_layers,
        )
        is_bi_encoder = self.options.model == retrieval_options.BI_ENCODER
        if is_bi_encoder and frozen and int(frozen) >= num_layers:
            raise ValueError(
                f"--frozen_layers={frozen} leaves nothing to train: all weights of a "
                f"bi_encoder belong to the encoder, which has {num_layers} layers."
            )

    def _warn_of_depth(self):
        """Logs which scores are limited by the candidates of a cross-encoder."""
        if self.record.is_bi_encoder or not self.options.evaluates:
            return
        num_candidates = self.options.num_candidates
        depths = {f"recall_at_{k}": k for k in self.options.recall_at}
        depths["mrr"] = scores.MRR_DEPTH
        limited = [
            name
            for name, depth in depths.items()
            if min(depth, len(self._required_corpus)) > num_candidates
        ]
        if limited:
            logger.warning(
                "Only --num_candidates=%d passages per query are ranked; these scores "
                "depend on it: %s.",
                num_candidates,
                ", ".join(limited),
            )

    def _relevant_passages(self) -> dict[str, set[int]]:
        """Returns the numbers of the relevant passages of each query."""
        right: dict[str, set[int]] = {}
        for example in self.examples["dev"]:
            number = self._required_corpus.number_of_text(example.require_passage())
            right.setdefault(example.query, set()).add(number)
        return right

    def _by_text(self, neighbors: search_module.Neighbors) -> list[list[int]]:
        """Returns rankings in which passages with the same text have one number."""
        return np.asarray(self._required_corpus.numbers)[neighbors.numbers].tolist()

    @property
    def _required_corpus(self) -> examples_module.Corpus:
        """The corpus, which the options guarantee for a run that searches."""
        return typing.cast(examples_module.Corpus, self.corpus)

    @functools.cached_property
    def _source(self) -> features.RankingSource:
        return features.RankingSource(
            self.features("train"),
            self.record,
            self.vocabulary,
            num_negatives=self._num_negatives,
            seed=self.options.random_seed,
        )

    @property
    def _num_negatives(self) -> int:
        return self.options.negatives_per_query(
            lambda: self.features("train").max_negatives
        )

    def _rank(self, queries, top_k, predict):
        """Returns the passages of each query, best first.

        `top_k` is the number of passages that a bi-encoder finds. A cross-encoder
        ranks and returns all its candidates.
        """
        if self.record.is_bi_encoder:
            return self._retrieve(self._retriever(predict), queries, top_k)
        return ranking.rerank(
            ranking.PairScorer(
                _applied(predict, "logits"), self.tokenizer, self.record
            ),
            queries,
            self._candidates(tuple(queries)),
            self._required_corpus.passages,
            progress=self.progress,
        )

    def _candidates(self, queries):
        """Returns the passages that the bi-encoder of `retrieve_with` finds.

        They do not change during the run, so they are computed once.
        """
        if queries in self._candidates_of:
            return self._candidates_of[queries]
        path = self.options.retrieve_with or ""
        bi_encoder = retrieval_predictor.load(path, searches=True)
        if isinstance(bi_encoder, retrieval_predictor.CrossEncoderPredictor):
            raise ValueError(
                f"--retrieve_with={path} is the run of a cross_encoder; expected the "
                "run of a bi_encoder."
            )
        self._candidates_of[queries] = self._retrieve(
            bi_encoder.retriever, queries, self.options.num_candidates
        )
        return self._candidates_of[queries]

    @functools.cached_property
    def _candidates_of(self) -> dict[tuple[str, ...], search_module.Neighbors]:
        return {}

    def _retriever(self, predict):
        step, options = self.trainer.step, self.options
        start = str(options.init_checkpoint)
        return ranking.Retriever(
            typing.cast(heads.TaskModel, self.trainer.model),
            ranking.TextEncoder(
                _applied(predict, "embeddings"), self.tokenizer, self.record
            ),
            task=self.record,
            vocabulary=self.vocabulary,
            checkpoint=f"step {step} of {options.output_dir}" if step else start,
        )

    def _retrieve(self, retriever, queries, top_k):
        self.trainer.folder.create()  # The vectors of the passages are written there.
        index = retriever.index(
            self._required_corpus, self.options.output_dir, progress=self.progress
        )
        return retriever.rank(
            queries, index, top_k, search=self.options.search, progress=self.progress
        )


def _applied(predict, key):
    """Returns a function from features to the model's output of that name."""
    return lambda packed: predict(batching.ArraySource(packed), keys=(key,))[key]


def _table(run, rows, name):
    """Returns the path of a table of queries."""
    columns = (("query", "passage"), ("negatives", "id"))
    content = given_data.json_lines(rows, *columns)
    return run.add_file(f"{name}.jsonl", content, trains=name == "train")
