"""The declaration of classification: its data, training, scores and answers."""

import collections
import dataclasses
import functools
import logging
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import batching
from bert_tf.data import label_names
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import run_report
from bert_tf.fine_tuning import task as task_module
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import classifier
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import glue
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import scores
from bert_tf.training import plots
from bert_tf.training import run_file

logger = logging.getLogger(__name__)


class Classification(task_module.Task):
    """Which class, classes or number does a text have? GLUE, XNLI, your own tables."""

    RECORD = classification_predictions.Record
    PREDICTOR = classification_predictions.Predictor
    PIPELINE_TAG = "text-classification"
    FROM_DATA = ("labels",)
    NOUN = "texts"

    options: classification_options.RunClassifierOptions
    record: classification_predictions.Record
    teacher: classification_predictions.Teacher | None = None
    class_weights: Mapping[str, float] | None = None

    @functools.cached_property
    def processor(self) -> examples_module.DataProcessor:
        """The reader of the data; default columns and labels: a trained model's."""
        options, trained = self.options, self.trained
        if options.tfds_name is not None:
            return glue.tfds_processor(options, trained)
        processor: examples_module.DataProcessor
        if options.task_name is None:
            labels = trained.labels if trained else options.labels
            columns = task_record.columns_of(examples_module.Columns, options, trained)
            kind = columns.label_kind
            if options.regression:
                kind = checkpoint_heads.REGRESSION
            elif options.label_separator is not None:
                kind = checkpoint_heads.MULTI_LABEL
            processor = examples_module.TableProcessor(
                self.paths(),
                columns=dataclasses.replace(columns, label_kind=kind),
                labels=labels,
                validation_split=options.validation_split,
            )
            processor.task_name = trained and trained.task_name
            return processor
        task_name = options.task_name.lower()
        if task_name == "xnli":
            processor = glue.XnliProcessor(options.language)
        else:
            processor = glue.PROCESSORS[task_name]()
        processor.task_name = task_name
        return processor

    @property
    def _folder(self) -> str:
        # Options check that named tasks have a data_dir; other processors ignore it.
        return self.options.data_dir or ""

    def _files(self, kind):
        """Returns the paths of "train", or of all sets to evaluate or to predict."""
        paths = self.processor.get_files(self._folder)
        return [
            path
            for name, of_set in paths.items()
            if name.startswith(kind)
            for path in of_set
        ]

    def data_sets(self) -> dict[str, run_file.DataSet]:
        options, processor, data_sets = self.options, self.processor, {}
        for part in ("train", "dev", "test"):
            paths = self._files(part)
            if options.task_name is not None:
                languages = processor.eval_languages if part != "train" else ()
                if languages and part not in options.sets_to_read:
                    continue  # A later command chooses the languages.
                name = "_".join([str(processor.task_name), *sorted(languages)])
            elif paths:
                name = run_file.stem(paths[0])
                if part == "dev" and options.validation_split:
                    name += "_held_out"
            else:
                continue
            data_sets[part] = run_file.DataSet(name=name, paths=tuple(paths))
        return data_sets

    def read_set(
        self, name: str, path: str, *, broken_rows: list[str] | None = None
    ) -> dict[str, list[examples_module.InputExample]]:
        """Returns all sets of a kind, such as "dev" and "dev_mismatched"."""
        self.processor.broken_rows = broken_rows
        return self.processor.read_sets(self._folder, name)

    def read(self) -> classification_predictions.Record:
        """Reads all sets, and loads the teacher."""
        options = self.options
        record = self.applied_record() if self.trained else self.new_record()
        for name in options.sets_to_read:
            self.examples |= self.read_set(name, "")
        if options.trains:
            self.class_weights = features_module.class_weights(
                options.class_weights, record, self.examples["train"]
            )
        if options.teacher and options.do_train:
            self.teacher = classification_predictions.Teacher(options.teacher, record)
        return record

    def new_record(self) -> classification_predictions.Record:
        record = self.create_record(
            self.processor.columns,
            labels=tuple(self.processor.get_labels()),
            task_name=self.processor.task_name,
            validation_sha256=self.processor.get_held_out_fingerprint(),
        )
        if self.options.trains or self.start.source is None:
            return record
        return record.with_own_scores(self.start.source)

    def applied_record(self) -> classification_predictions.Record:
        """Checks that the data has the texts and labels that `trained` was made for."""
        options, processor, record = self.options, self.processor, self.trained
        run_dir, columns = options.output_dir, processor.columns
        if (columns.text_b_column is not None) != record.is_pair:
            kind = "pairs of texts" if record.is_pair else "single texts"
            raise ValueError(
                f"The model in {run_dir} was trained on {kind}, but the data has "
                "another form; change the data (see --task_name and --text_b_column)."
            )
        if columns.label_kind != record.label_kind:
            raise ValueError(
                f"The model in {run_dir} was trained on {record.label_kind} labels, "
                f"but the data has {columns.label_kind} labels."
            )
        names = [*record.labels], processor.get_labels()
        if names[0] != names[1]:
            ours, theirs = (", ".join(labels) or "a number" for labels in names)
            raise ValueError(
                f"The model in {run_dir} has the labels {ours}, but the data has "
                f"{theirs}; choose data with the same labels."
            )
        split, checksum = options.validation_split, record.validation_sha256
        if split and processor.get_held_out_fingerprint() != checksum:
            share = record.validation_split
            how = f"with --validation_split={share:g}" if share else "without it"
            raise ValueError(
                f"--validation_split={split:g} of {options.train_file}: the model in "
                f"{run_dir} was trained {how}, or the file has changed; evaluate a "
                "file that was not used in training (--eval_file)."
            )
        return record

    def check_head(self, head: checkpoint_heads.Head) -> None:
        path, kind = str(self.options.init_checkpoint), self.record.label_kind
        super().check_head(head)
        # A checkpoint may leave the kind out, and is then taken for a single-label one.
        if head.label_kind not in (checkpoint_heads.SINGLE_LABEL, kind):
            raise ValueError(
                f"{path} was trained on {head.label_kind} labels, but the data has "
                f"{kind} labels; change --regression or --label_separator."
            )
        if kind == checkpoint_heads.REGRESSION and (head.num_labels or 1) > 1:
            raise ValueError(
                f"{path} predicts {head.num_labels} numbers, but tables have one; use "
                f"bert_tf.load({path!r}).predict in Python."
            )

    @property
    def is_held_out(self) -> bool:
        return self.options.validation_split > 0

    def create_model(self) -> Any:
        if self.teacher is None:
            return super().create_model()
        return classifier.DistilledClassifier(
            self.config,
            num_labels=self.record.num_outputs,
            dtype=self.options.dtype,
        )

    def convert(self, name: str) -> packing.Rows:
        return features_module.rows_of(
            self.examples[name],
            self.record,
            self.tokenizer,
            weights=self.class_weights if name == "train" else None,
        )

    def training_data(self) -> task_module.TrainingData:
        for name, weight in (self.class_weights or {}).items():
            logger.info("  Weight of %s = %.4g", name, weight)
        data = super().training_data()
        if self.teacher is None:
            return data
        logits = self.teacher.logits(self.examples["train"], self.options)
        columns = self.features("train").columns | {classifier.TEACHER_LOGITS: logits}
        return dataclasses.replace(data, source=batching.ArraySource(columns))

    def training_facts(self) -> tuple[str, ...]:
        labels = [str(example.label) for example in self.examples["train"]]
        if self.record.label_kind == checkpoint_heads.REGRESSION:
            return (f"Labels of the training texts: {label_names.range_of(labels)}.",)
        names = label_names.all_names(labels, self.record.label_separator)
        return (f"Classes of the training texts: {text_checks.balance(names)}.",)

    def evaluate(self, predict: task_module.Predict) -> task_module.Evaluation:
        """See `Task.evaluate`. The outputs are the logits [N, C] of each set."""
        logits = {part: self.outputs(predict, part) for part in self._sets("dev")}
        by_set = {part: self._scores(part, rows) for part, rows in logits.items()}
        named = scores.named(by_set, self.processor.eval_languages)
        return task_module.Evaluation(scores=named, outputs=logits)

    def _sets(self, kind):
        """Returns the names of the sets to evaluate ("dev") or to predict ("test")."""
        return [name for name in self.examples if name.startswith(kind)]

    def _scores(self, part, logits):
        name, record = self.processor.task_name, self.record
        kind = record.label_kind
        columns = features_module.label_columns(self.examples[part], record)
        [truth] = columns.values()
        predicted = classification_predictions.predicted_of(logits, record)
        losses = classifier.MODELS[kind].example_losses(columns, logits)
        values = scores.task_scores(name, truth, predicted, kind=kind)
        return values | {"loss": float(np.mean(np.asarray(losses), dtype=np.float64))}

    def plot_data(self, evaluation: task_module.Evaluation) -> dict[str, Any]:
        record, baselines = self.record, {}
        plot_values: dict[str, Any] = {}
        for part, logits in evaluation.outputs.items():
            columns = features_module.label_columns(self.examples[part], record)
            [truth] = columns.values()
            baselines[part] = scores.baseline_scores(
                self.processor.task_name, truth, record.label_kind
            )
            if record.label_kind == checkpoint_heads.SINGLE_LABEL and not plot_values:
                predicted = classification_predictions.predicted_of(logits, record)
                confusion = plots.confusion_data(truth, predicted, record.labels)
                plot_values["confusion"] = confusion
        named = scores.named(baselines, self.processor.eval_languages)
        plot_values["baselines"] = {
            name: plots.baseline(plots.MAJORITY_CLASS, value)
            for name, value in named.items()
        }
        return plot_values

    def predict(self, predict: task_module.Predict) -> task_module.Predicted:
        texts: dict[str, Any] = {}
        for part in self._sets("test"):
            examples = self.examples[part]
            answers = classification_predictions.answers_of(
                self.outputs(predict, part), self.record
            )
            ids = ({"id": example.guid} for example in examples)
            records = [a | b for a, b in zip(ids, answers, strict=True)]
            suffix = part.removeprefix("test")
            name = run_file.with_suffix(classification_predictions.RELEASE_FILE, suffix)
            texts[name] = classification_predictions.release_lines(answers)
            name = run_file.with_suffix(task_module.PREDICTIONS_FILE, suffix)
            texts[name] = task_module.json_lines(records)
        return task_module.Predicted(files=texts)

    def summary(self) -> str:
        return self.record.summary()

    def card(self) -> run_report.Card:
        return dataclasses.replace(super().card(), languages=self.processor.languages)

    def data_files(self) -> tuple[run_report.DataFile, ...]:
        """Returns one record per file, which may contain several sets."""
        paths = self.processor.get_files(self._folder)
        counts: collections.Counter[tuple[str, str]] = collections.Counter()
        for part, rows in self.examples.items():
            # One file may contain several sets: XNLI's languages.
            part = part if part in paths else part.split("_")[0]
            for path in paths[part]:  # "file:line", or "file, row N".
                places = (f"{path}:", f"{path}, ")
                counts[part, path] += sum(row.place.startswith(places) for row in rows)
        return tuple(self.data_file(*key, count) for key, count in counts.items())

    # Checks of the data.

    @property
    def num_special(self) -> int:
        return 2 if self.processor.columns.text_b_column is None else 3

    def read_for_check(self, findings: text_checks.Findings) -> None:
        knows_labels = True
        for name in ("train", "dev", "test"):
            paths = self._files(name)
            # The folder of a task may lack some of its files.
            is_there = self.options.task_name is None or any(map(files.exists, paths))
            if not (paths and is_there):
                findings.passed("files", f"there is no {name} file")
                continue
            if name == "dev" and not knows_labels:
                findings.passed("files", "dev is not checked, because train failed")
                continue
            read = functools.partial(self.read_set, name, "")
            sets = fine_tuning_checks.read_file(findings, name, ", ".join(paths), read)
            self.examples |= {part: rows for part, rows in (sets or {}).items() if rows}
            if name == "train":
                knows_labels = sets is not None and self._knows_labels(findings)

    def _knows_labels(self, findings):
        """Returns whether training accepts the classes; reports why it does not."""
        try:
            self.processor.get_labels()
        except ValueError as error:
            findings.error("labels", error)
            return False
        return True

    def item(self, example: examples_module.InputExample) -> text_checks.Item:
        place = example.place or example.guid
        return text_checks.Item(texts=example.texts, label=example.label, place=place)

    def check_items(
        self,
        findings: text_checks.Findings,
        items: Mapping[str, Sequence[text_checks.Item]],
    ) -> None:
        """Reports the balance of the classes, or the range of the numbers."""
        columns = self.processor.columns
        labels = {
            part: [str(item.label) for item in of_part]
            for part, of_part in items.items()
            if not part.startswith("test")
        }
        if columns.label_kind != checkpoint_heads.REGRESSION:
            named = {
                part: label_names.all_names(of_part, columns.label_separator)
                for part, of_part in labels.items()
            }
            named = {part: names for part, names in named.items() if names}
            text_checks.check_labels(findings, named)
            return
        for part, of_part in labels.items():
            findings.judge(
                "label range",
                f"{part}: {label_names.range_of(of_part)}",
                is_good=len(set(map(label_names.number_in, of_part))) > 1,
            )

    @classmethod
    def give_data(cls, run: Any, train: Any, validation: Any) -> None:
        run.values["train_file"] = examples_module.file_of(run, train, "train")
        if given_data.is_share(validation):
            run.values |= {"validation_split": float(validation), "do_eval": True}
        elif validation is not None:
            path = examples_module.file_of(run, validation, "validation")
            run.values |= {"eval_file": path, "do_eval": True}
