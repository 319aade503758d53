"""The declaration of retrieval: which passages of a corpus answer a query?"""

import dataclasses
import functools
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import text_encoding
from bert_tf.data import batching
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import run_report
from bert_tf.fine_tuning import task as task_module
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import predictor as retrieval_predictor
from bert_tf.tasks.retrieval import scores
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.training import plots
from bert_tf.training import run_file

_NEGATIVES_OF_CROSS_ENCODER = 4
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

    RECORD = features.Record
    PREDICTOR = retrieval_predictor.RetrievalPredictor
    FIXED = ("max_query_length", "max_seq_length", "do_lower_case", "pooling")
    PIPELINE_TAG = "sentence-similarity"
    PREDICTION_BATCH = "eval_batch_size"

    # None if none was given. The options require one for a run that searches.
    corpus: Any = None
    # The step of the model, and its vectors of the corpus, float32 [M, H].
    _index: tuple[int, np.ndarray] | None = None
    # The last queries of a cross-encoder, and the passages found for them.
    _found: tuple[list[str], search_module.Neighbors] | None = None

    def data_sets(self) -> dict[str, run_file.DataSet]:
        """Returns the data of each set, with the corpus to search."""
        corpus = self.options.corpus_file
        return {
            name: run_file.file_data_set(path, *([corpus] if corpus else ()))
            for name, path in self.paths().items()
            if path is not None
        }

    def read_set(
        self, name: str, path: str, *, broken_rows: list[str] | None = None
    ) -> list[examples_module.RankingExample]:
        return examples_module.read_examples(
            path, name, with_passages=name != "test", broken_rows=broken_rows
        )

    def read(self) -> features.Record:
        options = self.options
        if self.trained and self.trained.model != options.model:
            raise ValueError(
                f"{options.output_dir} is the run of a {self.trained.model}; use "
                f"--model={self.trained.model}."
            )
        record: Any = super().read()
        if options.corpus_file is not None:
            self.corpus = examples_module.read_corpus(options.corpus_file)
            for example in self.corpus.missing(self.examples.get("dev", ())):
                # No search could find it, so the scores would be too low.
                raise ValueError(
                    f"{example.place}: the passage of {example.guid!r} is not in "
                    f"{self.corpus.path}; add it, or remove the query."
                )
            train = self.examples.get("train", ())
            examples_module.check_passages(options.train_file, train, self.corpus)
        self.options = dataclasses.replace(
            options,
            max_query_length=record.max_query_length,
            max_seq_length=record.max_seq_length,
        )
        return record

    def new_record(self) -> features.Record:
        """Returns the record that options and checkpoint describe.

        Training always learns cosines. A finished encoder keeps its own similarity.
        """
        options, text = self.options, self._text
        lengths = options.with_lengths(text.max_seq_length)
        record = features.Record(
            model=options.model,
            max_query_length=lengths.max_query_length,
            max_seq_length=lengths.max_seq_length,
            **self.start.tokenizer_arguments(),
            prompts=dict(text.prompts),
            default_prompt_name=text.default_prompt_name,
        )
        is_ranker = text.output_activation is not None
        if record.is_bi_encoder:
            path = str(options.init_checkpoint)
            if is_ranker and not options.trains:
                raise ValueError(
                    f"{path} scores pairs of texts and has no vectors; use "
                    "--model=cross_encoder, or train first (--do_train)."
                )
            return dataclasses.replace(
                record,
                pooling=options.pooling or text.pooling or rankers.DEFAULT_POOLING,
                normalize=options.trains or features.is_cosine(text, path),
            )
        record = dataclasses.replace(record, output_activation=text.output_activation)
        if options.trains or not is_ranker or options.max_query_length is not None:
            return record
        # An external ranker truncates the longer text of a pair, whichever it is.
        return dataclasses.replace(
            record, max_query_length=lengths.max_seq_length, longer_keeps_more=True
        )

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

    def counts(self) -> dict[str, int]:
        _ = self._source  # Refuses data without negatives before a folder is created.
        return super().counts() | {"Num negatives": self._num_negatives}

    def convert(self, name: str) -> features.TrainingData:
        return features.convert_examples_to_features(
            self.examples[name],
            self.tokenizer,
            corpus=self.corpus,
            query_prompt=self.record.query_prompt,
            passage_prompt=self.record.passage_prompt,
        )

    def training_data(self) -> task_module.TrainingData:
        data = self.features("train")
        return task_module.TrainingData(
            source=self._source,
            facts=data.length_facts(self.record),
        )

    def evaluate(self, predict: task_module.Predict) -> task_module.Evaluation:
        """See `Task.evaluate`; also writes the passages of a bi-encoder."""
        right = self.corpus.relevant(self.examples["dev"])
        queries, positives = list(right), list(right.values())
        ranked = self._rank(queries, scores.MRR_DEPTH, predict)
        self._write_passages()
        # Passages with the same text have one number.
        rankings = np.asarray(self.corpus.numbers)[ranked.numbers].tolist()
        return task_module.Evaluation(scores=scores.all_scores(rankings, positives))

    def plot_data(self, evaluation: task_module.Evaluation) -> dict[str, Any]:
        """Returns the scores by chance."""
        right = self.corpus.relevant(self.examples["dev"])
        num_passages = len(set(self.corpus.numbers))
        by_chance = scores.scores_by_chance(num_passages, list(right.values()))
        if self.options.model == retrieval_options.CROSS_ENCODER:
            # It orders the candidates only, which may lack the right passage.
            most = self.options.num_candidates
            for k in scores.RECALL_AT:
                if k > most:
                    del by_chance[f"eval_recall_at_{k}"]
        baselines = {
            name: plots.baseline("random order", value)
            for name, value in by_chance.items()
        }
        return {"baselines": baselines}

    def predict(self, predict: task_module.Predict) -> task_module.Predicted:
        self._write_passages()
        examples, top_k = self.examples["test"], self.options.top_k
        queries = [example.query for example in examples]
        ranked = self._rank(queries, top_k, predict)
        best = (ranked.numbers[:, :top_k], ranked.scores[:, :top_k])
        records = (
            {"id": example.guid}
            | retrieval_predictor.answer(example.query, numbers, values, self.corpus)
            for example, numbers, values in zip(examples, *best, strict=True)
        )
        return task_module.Predicted(
            files={task_module.PREDICTIONS_FILE: task_module.json_lines(records)}
        )

    def summary(self) -> str:
        return _SUMMARIES[self.record.model][1]

    def card(self) -> run_report.Card:
        pipeline_tag, _ = _SUMMARIES[self.record.model]
        return dataclasses.replace(super().card(), pipeline_tag=pipeline_tag)

    def data_files(self) -> tuple[run_report.DataFile, ...]:
        files = super().data_files()
        if self.corpus is None:
            return files
        path, count = self.corpus.path, len(self.corpus)
        return (*files, self.data_file("corpus", path, count))

    def read_for_check(self, findings: text_checks.Findings) -> None:
        self.options = self.options.with_lengths(self._text.max_seq_length)
        super().read_for_check(findings)
        if path := self.options.corpus_file:
            read = functools.partial(examples_module.read_corpus, path)
            self.corpus = fine_tuning_checks.read_file(findings, "corpus", path, read)

    def item(self, example: examples_module.RankingExample) -> text_checks.Item:
        texts = tuple(filter(None, (example.query, example.passage)))
        return text_checks.Item(texts=texts, label=None, place=example.place)

    def check_items(
        self,
        findings: text_checks.Findings,
        items: Mapping[str, Sequence[text_checks.Item]],
    ) -> None:
        if self.corpus is None:
            return
        for example in self.corpus.missing(self.examples.get("dev", ())):
            sentence = f"the passage of {example.guid!r} is not in {self.corpus.path}"
            findings.error("corpus", sentence, example.place)

    def row_lengths(self, lengths: np.ndarray) -> np.ndarray:
        queries, passages = lengths[:, 0], lengths[:, -1]
        if self.num_special == 2 or lengths.shape[1] == 1:
            return passages
        return passages + np.minimum(queries, self.options.max_query_length - 2)

    def limits(
        self, lengths: np.ndarray
    ) -> Sequence[tuple[np.ndarray, dict[str, Any]]]:
        limit = self.options.max_query_length
        of_queries = {"room": limit - 2, "limit": f"--max_query_length={limit}"}
        passages = super().limits(lengths) if lengths.shape[1] == 2 else ()
        return [(lengths[:, 0], of_queries), *passages]

    @property
    def num_special(self) -> int:
        is_bi_encoder = self.options.model == retrieval_options.BI_ENCODER
        return 2 if is_bi_encoder else features.NUM_SPECIAL_OF_PAIR

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
        run.values["train_file"] = _file(run, train, rows, "train")
        if validation is not None:
            path = _file(run, validation, held_out, "validation")
            run.values |= {"eval_file": path, "do_eval": True}
        path = given_data.file_path(corpus)
        if path is None:
            passages = examples_module.given_passages(corpus, [*rows, *held_out])
            content = given_data.json_lines(passages, ("passage",))
            path = run.add_file(given_data.CORPUS, content, trains=True)
        run.values["corpus_file"] = path

    @classmethod
    def prepare_predictor(cls, predictor: Any, run: Any) -> Any:
        """Writes the corpus of a bi-encoder, so that `predict` can search it."""
        if run.option("model") == retrieval_options.BI_ENCODER:
            predictor.index(run.values["corpus_file"])
        return predictor

    @property
    def _text(self):
        source = self.start.source
        return source.encoder_text if source else text_encoding.TextEncoding()

    @functools.cached_property
    def _source(self):
        return features.RankingSource(
            self.features("train"),
            self.record,
            self.vocabulary,
            num_negatives=self._num_negatives,
            seed=self.options.random_seed,
        )

    @property
    def _num_negatives(self):
        options = self.options
        if options.num_negatives is not None:
            return options.num_negatives
        if options.model == retrieval_options.CROSS_ENCODER:
            return _NEGATIVES_OF_CROSS_ENCODER
        if options.check:  # Before duplicates are known.
            return max(len(row.negatives) for row in self.examples["train"])
        return max(map(len, self.features("train").negatives))

    def _rank(self, queries, top_k, predict):
        """Returns the passages of each query, best first.

        `top_k` is the number of passages that a bi-encoder finds. A cross-encoder
        ranks and returns all its candidates.
        """
        if not self.record.is_bi_encoder:
            return self._rerank(queries, self._candidates(queries), predict)
        retriever = search_module.Retriever(
            _applied(predict, "embeddings"), self.tokenizer, self.record
        )
        step = self.trainer.step
        if self._index is None or self._index[0] != step:
            self._index = step, retriever.corpus(self.corpus.passages)
        return search_module.search(retriever.queries(queries), self._index[1], top_k)

    def _rerank(self, queries, candidates, predict):
        """Returns candidates in the order of the cross-encoder's scores."""
        numbers = candidates.numbers
        scores = search_module.score_pairs(
            _applied(predict, "logits"),
            self.tokenizer,
            self.record,
            [query for query in queries for _ in numbers[0]],
            [self.corpus.passages[number] for number in numbers.ravel()],
        ).reshape(numbers.shape)
        order = np.argsort(-scores, axis=1, kind="stable")
        return search_module.Neighbors(
            numbers=np.take_along_axis(numbers, order, axis=1),
            scores=np.take_along_axis(scores, order, axis=1),
        )

    @functools.cached_property
    def _retriever(self):
        """The bi-encoder of `retrieve_with`, and its vectors of the corpus."""
        path = self.options.retrieve_with or ""
        predictor = retrieval_predictor.RetrievalPredictor.load(path, searches=True)
        if isinstance(predictor, retrieval_predictor.CrossEncoderPredictor):
            raise ValueError(
                f"--retrieve_with={path} is the run of a cross_encoder; expected "
                "the run of a bi_encoder."
            )
        return predictor.retriever, predictor.retriever.corpus(self.corpus.passages)

    def _candidates(self, queries):
        """Returns the passages that `_retriever` finds for each query."""
        if self._found is None or self._found[0] != queries:
            retriever, index = self._retriever
            vectors, count = retriever.queries(queries), self.options.num_candidates
            self._found = queries, search_module.search(vectors, index, count)
        return self._found[1]

    def _write_passages(self):
        if self.record.is_bi_encoder and self.trainer.folder.is_written:
            search_module.write_passages(self.options.output_dir, self.corpus)


def _applied(predict, key):
    """Returns a function from features to the model's output of that name."""
    return lambda packed: predict(batching.ArraySource(packed), keys=(key,))[key]


def _file(run, data, rows, name):
    """Returns the path of queries, whose rows are written if they are in memory."""
    columns = (("query", "passage"), ("negatives", "id"))
    return given_data.file_path(data) or run.add_file(
        f"{name}.jsonl", given_data.json_lines(rows, *columns), trains=name == "train"
    )
