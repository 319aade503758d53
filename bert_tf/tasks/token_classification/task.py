"""The declaration of token classification: a tag for every word."""

import dataclasses
import functools
import itertools
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.data import batching
from bert_tf.data import text_checks
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import task as task_module
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import kernels
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tasks.token_classification import options as token_classification_options
from bert_tf.tasks.token_classification import schemes
from bert_tf.tasks.token_classification import scores
from bert_tf.tokenization import words as words_module
from bert_tf.training import run_file

FILES = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}
ROWS_PER_PART = 4096  # Rows whose logits are in memory at a time.


class TokenClassification(task_module.Task):
    """Which words are names? CoNLL files, plain text, tags of any other kind."""

    RECORD = features_module.Record
    PREDICTOR = features_module.Predictor
    PIPELINE_TAG = "token-classification"
    FIXED = (
        "max_seq_length",
        "do_lower_case",
        "document_context",
        "feature_based",
        "tag_scheme",
    )
    FROM_DATA = ("labels",)
    UNIT = "rows"

    options: token_classification_options.RunNerOptions

    @functools.cached_property
    def columns(self) -> examples.Columns:
        """The columns of the files. `read_set` replaces an unknown column of tags."""
        word, tag = self.options.word_column, self.options.tag_column
        if self.trained:
            known = self.trained
            word = known.word_column if word is None else word
            tag = known.tag_column if tag is None else tag
        return examples.Columns(word=word or 0, tag=tag)

    def is_plain_text(self, name: str) -> bool:
        """Returns whether a set is plain text rather than a column file."""
        return name == "test" and self.options.predict_file is not None

    def paths(self) -> dict[str, str | None]:
        options = self.options
        paths: dict[str, str | None] = dict.fromkeys(FILES)
        if folder := options.data_dir:
            paths = {name: os.path.join(folder, file) for name, file in FILES.items()}
        return paths | {"test": options.predict_file or paths["test"]}

    def data_sets(self) -> dict[str, run_file.DataSet]:
        sets = super().data_sets()
        if self.options.predict_file is not None:
            sets["test"] = run_file.file_data_set(self.options.predict_file)
        return sets

    def read_set(
        self, name: str, path: str, *, broken_rows: list[str] | None = None
    ) -> list[examples.Sentence]:
        if self.is_plain_text(name):
            return examples.read_plain_text(path, **self._known_words())
        if not self.trained and not self.examples and name != "test":
            self.columns = examples.resolved_columns(path, self.columns)
        return examples.read_sentences(path, self.columns, broken_rows=broken_rows)

    def read(self) -> features_module.Record:
        head = None
        if not self.trained:
            head = task_record.head_to_apply(self.options, self.start.source)
        # The release's names alone do not distinguish a tag head from a classifier's.
        if head is not None and (
            head.is_known or head.kind != kinds.Head.CLASSIFICATION
        ):
            super().check_head(head)
        record: Any = super().read()
        paths = {name: str(path) for name, path in self.paths().items()}
        for name, sentences in self.examples.items():
            path, scheme, labels = paths[name], record.tag_scheme, record.labels
            if not self.is_plain_text(name):
                self._check_documents(path, sentences)
            if name != "test":  # Its tags are optional and used for scores only.
                schemes.check_tags(path, sentences, scheme, labels)
        return record

    def new_record(self) -> features_module.Record:
        options, train = self.options, self.examples.get("train")
        if self.columns.tag is None and not options.predict_file:
            raise ValueError(
                f"{options.output_dir} contains no task.json, so the tag column of "
                "test.txt is unknown; set --tag_column."
            )
        if options.true_case and not train:
            raise ValueError(
                f"--true_case learns from train.txt, but {options.output_dir} contains "
                "no training run; omit it, or train first (--do_train)."
            )
        labels, scheme = self._labels_and_scheme()
        words, tag_column = [one.words for one in train or ()], self.columns.tag
        return self.create_record(
            word_column=self.columns.word,
            tag_column=self.columns.word + 1 if tag_column is None else tag_column,
            labels=tuple(labels),
            tag_scheme=scheme,
            doc_stride=options.max_seq_length // 2,
            true_cases=words_module.learned_cases(words) if options.true_case else None,
            **self._known_words(),
        )

    def applied_record(self) -> features_module.Record:
        options, trained = self.options, self.trained
        if options.true_case and trained.true_cases is None:
            raise ValueError(
                f"--true_case, but the model in {options.output_dir} was trained "
                "without it; omit --true_case."
            )
        return dataclasses.replace(
            trained, word_column=self.columns.word, tag_column=self.columns.tag
        )

    def check_head(self, head: checkpoint_heads.Head) -> None:
        """See `read`, which checks the kind of the head before the labels."""

    def num_train_rows(self) -> int:
        return len(self.features("train").columns["input_ids"])

    def counts(self) -> dict[str, int]:
        return {
            "Num sentences": len(self.examples["train"]),
            "Num rows": self.num_train_rows(),
        }

    def convert(self, name: str) -> features_module.Features:
        return features_module.convert_sentences_to_features(
            self.examples[name], self.tokenizer, self.record
        )

    def training_facts(self) -> tuple[str, ...]:
        return (f"Scheme of the tags: {self.record.tag_scheme}.",)

    def evaluate(self, predict: task_module.Predict) -> task_module.Evaluation:
        """Returns the scores of "dev"; `eval_loss` is the mean over words.

        The outputs are the tags predicted for each sentence.
        """
        logits = self._word_logits("dev", predict)
        features = self.features("dev")
        tag_ids = features.first_pieces(features.columns["tag_ids"])
        losses = np.asarray(kernels.current().cross_entropy(logits, tag_ids))
        tagged = features_module.tagged(logits, self.record.labels)
        predicted = self._by_sentence("dev", tagged)
        loss = {"eval_loss": float(np.mean(losses, dtype=np.float64))}
        return task_module.Evaluation(
            scores=self._scores("dev", predicted, "eval") | loss, outputs=predicted
        )

    def plot_data(self, evaluation: task_module.Evaluation) -> dict[str, Any]:
        """Returns the baselines and the confusion matrix."""
        return scores.plot_values(
            self._true_tags("dev"), evaluation.outputs, self.record.tag_scheme
        )

    def predict(self, predict: task_module.Predict) -> task_module.Predicted:
        logits = self._word_logits("test", predict)
        tagged = features_module.tagged(logits, self.record.labels)
        is_plain = self.is_plain_text("test")
        answers = features_module.line_answers(
            str(self.paths()["test"]) if is_plain else self.examples["test"],
            tagged,
            self.record,
            entities=self.options.entities,
        )
        test_scores: dict[str, float] = {}
        if self.examples["test"][0].tags is not None:
            predicted = self._by_sentence("test", tagged)
            test_scores = self._scores("test", predicted, "test")
        return task_module.Predicted(
            files={task_module.PREDICTIONS_FILE: task_module.json_lines(answers)},
            scores=test_scores,
        )

    def summary(self) -> str:
        labels = self.record.labels
        if self.record.tag_scheme == schemes.NONE:
            return f"Gives every word one of {len(labels)} tags."
        kinds = sorted({schemes.split_tag(tag)[1] for tag in labels} - {""})
        return f"Finds entities of {len(kinds)} types: {', '.join(kinds)}."

    def item(self, example: examples.Sentence) -> text_checks.Item:
        return text_checks.Item(
            texts=(" ".join(example.words),),
            label=" ".join(example.tags or ()),
            place=f"{example.path}:{example.lines[0]}",
        )

    def check_items(
        self,
        findings: text_checks.Findings,
        items: Mapping[str, Sequence[text_checks.Item]],
    ) -> None:
        """Checks documents, the scheme of the tags, and the balance of their types."""
        paths, tagged = self.paths(), {}
        for name, sentences in self.examples.items():
            try:
                self._check_documents(paths[name], sentences)
            except ValueError as error:
                findings.error("documents", error)
            if sentences[0].tags is not None:
                tagged[name] = self._true_tags(name)
            elif name != "test":
                findings.error("tags", f"{paths[name]} has no tags")
        if not tagged:
            return
        scheme, first = self.options.tag_scheme, next(iter(tagged))
        try:
            if scheme == token_classification_options.AUTO:
                scheme = schemes.recognize_scheme(tagged[first], path=str(paths[first]))
        except ValueError as error:
            findings.error("tags", error)
            return
        findings.passed("tag scheme", scheme)
        types: dict[str, list[str]] = {}
        for name in tagged:
            breaches = list(schemes.breaches(self.examples[name], scheme))
            for line, reason in breaches:
                findings.error("tags", reason, f"{paths[name]}:{line}")
            if not breaches:
                findings.passed("tags", f"{name}: all tags follow their scheme")
            tags: Any = itertools.chain.from_iterable(tagged[name])
            if scheme != schemes.NONE:
                tags = (schemes.split_tag(t)[1] for t in tags if t != schemes.OUTSIDE)
            if name != "test" and (kinds := list(tags)):
                types[name] = kinds
        text_checks.check_labels(findings, types)

    def num_windows(self, lengths: np.ndarray) -> np.ndarray:
        options = self.options
        half = options.max_seq_length // 2
        stride = self.trained.doc_stride if self.trained else half
        if options.document_context:
            return lengths / stride  # About, because documents are divided.
        return 1 + -(-np.maximum(lengths - options.max_seq_length + 2, 0) // stride)

    @classmethod
    def give_data(cls, run: Any, train: Any, validation: Any) -> None:
        if given_data.is_share(validation):
            sentences = examples.given_sentences(train)
            texts = [[" ".join(words)] for words, _ in sentences]
            sides = run.divided(sentences, texts, validation)
            contents = [examples.column_text(side) for side in sides]
        else:
            given = [train] if validation is None else [train, validation]
            contents = list(map(examples.given_file, given))
        # The names that `paths` expects.
        for name, content in zip(("train.txt", "dev.txt"), contents, strict=False):
            path = run.add_file(name, content, trains=name == "train.txt")
            run.values["data_dir"] = os.path.dirname(path)
        run.values["do_eval"] = validation is not None

    def _check_documents(self, path, sentences):
        uses_documents = self.options.document_context
        if self.trained:
            uses_documents = self.trained.document_context
        if uses_documents and not any(sentence.document for sentence in sentences):
            raise ValueError(
                f"{path} has no line that starts with -DOCSTART-, so its sentences "
                "cannot be grouped into documents; omit --document_context."
            )

    def _known_words(self):
        """Returns the fields of the record about the words of the training data."""
        if self.trained:
            names = ("whole_words", "longest_word")
            return {name: getattr(self.trained, name) for name in names}
        sentences = [one.words for one in self.examples.get("train", ())]
        return {
            "whole_words": words_module.learned_whole_words(sentences),
            "longest_word": max(map(len, itertools.chain(*sentences)), default=0),
        }

    def _labels_and_scheme(self):
        """Returns the tags of a new model and their scheme."""
        labels: Any = self.options.labels
        scheme = self.options.tag_scheme
        is_auto = scheme == token_classification_options.AUTO
        if "train" in self.examples:
            path, tags = str(self.paths()["train"]), self._true_tags("train")
            if is_auto:
                scheme = schemes.recognize_scheme(tags, path=path)
            return labels or schemes.labels_of_training(path, tags, scheme), scheme
        if not labels and self.start.source is not None:
            labels = self.start.source.head.labels
        if not labels:
            raise ValueError(
                f"The tags of {self.options.init_checkpoint} are unknown; list them "
                "with --labels in the order of its outputs."
            )
        return labels, schemes.scheme_of_labels(labels) if is_auto else scheme

    def _word_logits(self, name, predict):
        """Returns the logits of all words, float32 [W, C]."""
        features, logits = self.features(name), []
        numbers = range(len(features.columns["input_ids"]))
        for start in range(0, len(numbers), ROWS_PER_PART):
            _, part = features.selected(numbers[start : start + ROWS_PER_PART])
            outputs = predict(batching.ArraySource(part.columns), keys=("logits",))
            logits.append(part.first_pieces(outputs["logits"]))
        return np.concatenate(logits)

    def _by_sentence(self, name, tagged):
        rest = (tag for tag, _ in tagged)
        return [
            list(itertools.islice(rest, len(sentence.words)))
            for sentence in self.examples[name]
        ]

    def _true_tags(self, name):
        return [list(sentence.tags or ()) for sentence in self.examples[name]]

    def _scores(self, name, predicted, prefix):
        values = scores.tag_scores(
            self._true_tags(name), predicted, self.record.tag_scheme
        )
        return {f"{prefix}_{key}": value for key, value in values.items()}
