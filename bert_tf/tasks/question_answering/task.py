"""The declaration of question answering: its data, scores and answers."""

import dataclasses
import functools
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints.release import rotation
from bert_tf.data import findings as findings_module
from bert_tf.data import named_datasets
from bert_tf.data import text_checks
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import task as task_module
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import predictor
from bert_tf.tasks.question_answering import scores as question_answering_scores
from bert_tf.tokenization import full
from bert_tf.training import plots
from bert_tf.training import run_folder

logger = logging.getLogger(__name__)


class QuestionAnswering(task_module.Task):
    """Which part of a text answers a question? SQuAD 1.1 and 2.0.

    "dev" and "test" are the same file, `squad_file`.
    """

    RECORD = predictor.Record
    PREDICTOR = predictor.Predictor
    FIXED = (
        "max_seq_length",
        "do_lower_case",
        "doc_stride",
        "max_query_length",
        "version_2_with_negative",
        "bilstm_on_top",
    )
    MAY_CHANGE = predictor.FOR_PREDICTING
    UNIT = "questions"  # As in 2018; an epoch has more windows than questions.
    RUN = predictor.run

    options: question_answering_options.RunSquadOptions
    squad_file: question_answering_examples.SquadFile
    # The predictions of the weights of a step.
    _predicted: tuple[int, list[question_answering_predictions.Prediction]] | None = (
        None
    )

    def paths(self) -> dict[str, str | None]:
        options = self.options
        train, predicted = options.train_file, options.predict_file
        if options.tfds_name is not None:
            train = self._tfds_path(0, is_needed=options.trains)
            is_needed = options.evaluates or options.do_predict
            predicted = self._tfds_path(1, is_needed=is_needed)
        paths = {"train": train, "dev": predicted}
        return paths if options.check else {**paths, "test": predicted}

    def read_set(
        self, name: str, path: str, *, broken_rows: list[str] | None = None
    ) -> list[question_answering_examples.SquadExample]:
        squad_file = question_answering_examples.read_squad(path)
        if broken_rows is not None:
            return squad_file.examples
        if name == "train":
            return question_answering_examples.training_examples(
                squad_file,
                version_2_with_negative=self.options.version_2_with_negative,
            )
        if self.options.evaluates and not squad_file.has_answers:
            raise ValueError(
                f"{path} has questions without answers, so it cannot be "
                "used for evaluation; use a file with answers, or omit --do_eval and "
                "--eval_every_steps."
            )
        if self.options.evaluates:
            question_answering_scores.log_units(squad_file)
        self.squad_file = squad_file
        return squad_file.examples

    def read(self) -> predictor.Record:
        options, paths = self.options, self.paths()
        if options.trains:
            self.examples["train"] = self.read_set("train", str(paths["train"]))
        if options.evaluates or options.do_predict:
            examples = self.read_set("test", str(paths["test"]))
            if options.evaluates:
                self.examples["dev"] = examples
        record = self.applied_record() if self.trained else self.new_record()
        self._check_threshold(record)
        return record

    def new_record(self) -> predictor.Record:
        options, of_tokenizer = self.options, self.start.tokenizer_arguments()
        names = [field.name for field in dataclasses.fields(predictor.Record)]
        values = {n: getattr(options, n) for n in names if n not in of_tokenizer}
        record = predictor.Record(**values, **of_tokenizer)
        if options.trains:
            if rotation.latest(options.output_dir) is None:
                return record
            # Repeating a command must not lose a threshold that was stored since.
            stored = predictor.Record.read(options.output_dir)
            return self._with_stored_rules(record, stored)
        source = self.start.source
        beside = None if source is None else _record_beside(source.path)
        if beside is None:
            return record
        record = self._with_stored_rules(record, beside)
        if beside.version_2_with_negative:
            record = dataclasses.replace(record, version_2_with_negative=True)
        return record

    def applied_record(self) -> predictor.Record:
        return self._with_stored_rules(self.trained, self.trained)

    def counts(self) -> dict[str, int]:
        return {"Num orig examples": len(self.examples["train"])}

    def training_data(self) -> task_module.TrainingData:
        windows = self.features("train")
        logger.info("  Num split examples = %d", len(windows))
        return task_module.TrainingData(
            source=features_module.WindowSource(windows),
            lengths=windows.example_lengths,
        )

    @functools.cached_property
    def tokenizer(self) -> full.FullTokenizer:
        """The tokenizer of the run."""
        return full.FullTokenizer(self.vocabulary, **self.record.tokenizer_arguments())

    def convert(self, name: str) -> features_module.Windows:
        is_training = name == "train"
        return features_module.convert_examples_to_features(
            self.examples["train"] if is_training else self.squad_file.examples,
            self.tokenizer,
            self.record.sizes,
            is_training=is_training,
        )

    def predictions(self) -> list[question_answering_predictions.Prediction]:
        """Returns the predictions of the current weights for `squad_file`."""
        options, step = self.options, self.trainer.step
        if self._predicted is not None and self._predicted[0] == step:
            return self._predicted[1]
        evaluation = self.prediction(
            options.predict_batch_size
            if options.do_predict
            else options.eval_batch_size
        )
        windows = self.features("test")
        logits = evaluation.predict(
            features_module.WindowSource(windows), keys=predictor.LOGITS
        )
        start_logits, end_logits = (
            question_answering_predictions.without_padding(windows, logits[key])
            for key in predictor.LOGITS
        )
        predictions = question_answering_predictions.predictions_of(
            windows,
            (start_logits, end_logits),
            self.record.rules,
            alignment.Aligner(
                self.vocabulary,
                **self.record.tokenizer_arguments(),
                verbose=options.verbose_logging,
            ),
        )
        self._predicted = (step, predictions)
        return predictions

    def score_names(self) -> list[str]:
        answers = dict.fromkeys((one.qas_id for one in self.squad_file.examples), "")
        null_odds = None
        if self.record.threshold is not None:
            null_odds = dict.fromkeys(answers, 0.0)
        return list(
            question_answering_scores.eval_scores(self.squad_file, answers, null_odds)
        )

    def evaluate(self, predict: task_module.Predict) -> task_module.Evaluation:
        """Returns the scores of `predictions`. The outputs are the answers by id."""
        predictions, threshold = self.predictions(), self.record.threshold
        return task_module.Evaluation(
            scores=question_answering_scores.prediction_scores(
                self.squad_file, predictions, threshold
            ),
            outputs={one.qas_id: one.answer(threshold).text for one in predictions},
        )

    def before_final_evaluation(self) -> None:
        """With `tune_threshold`, stores the threshold with the best F1 in the run."""
        if not self.options.tune_threshold:
            return
        predictions, record = self.predictions(), self.record
        scores = question_answering_scores.prediction_scores(
            self.squad_file, predictions, record.threshold
        )
        best = scores["eval_best_f1_thresh"]
        above = [one.null_odds for one in predictions if one.null_odds > best]
        # The best threshold is the null odds of one of the questions. If it were used
        # itself, rounding in later predictions could remove the answer to that one.
        threshold = (best + min(above)) / 2 if above else best + 1.0
        values = {"null_score_diff_threshold": threshold}
        record = dataclasses.replace(record, **values)
        self.record = record
        self.trainer.folder.update_task(values)

    def details(self, evaluation: task_module.Evaluation) -> task_module.Details:
        answers, threshold = evaluation.outputs, self.record.threshold
        scores = question_answering_scores.question_scores(self.squad_file, answers)
        baselines: dict[str, Any] = {}
        if threshold is not None:
            without = question_answering_scores.eval_scores(
                self.squad_file, dict.fromkeys(answers, "")
            )
            baselines = {
                name: plots.baseline("no answer", without[name], perfect=100)
                for name in ("eval_exact_match", "eval_f1")
            }
        lines: list[str] = []
        if self.options.tune_threshold:
            lines.append(f"Stored the threshold {threshold:g} in the run.")
        return task_module.Details(
            wrong=[
                model_card.WrongExample(
                    text=f"{example.question_text} ||| {example.context.text}",
                    expected=example.answers[0].text if example.answers else "",
                    predicted=answers[example.qas_id],
                )
                for example in self.squad_file.examples
                if not scores[example.qas_id].exact
            ],
            num_examples=len(answers),
            plots={"baselines": baselines},
            lines=lines,
        )

    def predict(self, predict: task_module.Predict) -> task_module.Predicted:
        contents = question_answering_predictions.file_contents(
            self.predictions(), self.record.threshold
        )
        return task_module.Predicted(
            files={name: [text] for name, text in contents.items()}
        )

    def card(self) -> model_card.Card:
        no_answer = "" if self.record.threshold is None else ", or that there is none"
        return model_card.Card(
            pipeline_tag="question-answering",
            summary=f"Finds the answer to a question in a text{no_answer}.",
            options=self.options,
            data=self.data_files(),
        )

    def item(self, example: question_answering_examples.SquadExample) -> Any:
        return text_checks.Item(
            texts=(example.question_text, example.context.text),
            label=None,  # A question may have several correct answers.
            place=f"question {example.qas_id}",
        )

    def check_items(self, findings: findings_module.Findings, items: Any) -> None:
        """Checks that answers occur in their contexts, as training and scoring do."""
        for name, examples in self.examples.items():
            path = str(self.paths()[name])
            faults = [
                (one, fault) for one in examples for fault in self._faults(name, one)
            ]
            for example, fault in faults:
                is_refused = fault.kind == question_answering_examples.REFUSED
                is_error = name == "train" and is_refused
                report = findings.error if is_error else findings.warning
                report("answers", f"question {example.qas_id}: {fault.reason}", path)
            if not faults:
                findings.passed("answers", f"{name}: all occur in their contexts")
            elif name == "train" and len(faults) == len(examples):
                findings.error("answers", "no question can be used for training", path)
            share = sum(one.is_impossible for one in examples) / len(examples)
            findings.passed("answers", f"{name}: {share:.1%} of questions have none")
        contexts = [{one.context.text for one in e} for e in self.examples.values()]
        if len(contexts) == 2:
            shared = len(contexts[0] & contexts[1])
            findings.judge(
                "overlap",
                f"{shared:,} of {len(contexts[1]):,} contexts of dev are also in train",
                is_good=not shared,
            )

    def _faults(self, name, example):
        """Returns the verdicts on answers of a question that cannot be used."""
        if name == "train":
            verdict = question_answering_examples.verdict(
                example, version_2_with_negative=self.options.version_2_with_negative
            )
            return [verdict] * (verdict.kind != question_answering_examples.KEPT)
        # Scoring uses all answers, and needs no positions.
        answers = () if example.is_impossible else example.answers
        verdicts = [
            question_answering_examples.verdict(
                dataclasses.replace(example, answers=(answer,)),
                version_2_with_negative=False,
            )
            for answer in answers
            if answer.start >= 0
        ]
        refused = question_answering_examples.REFUSED
        return [verdict for verdict in verdicts if verdict.kind == refused]

    @property
    def num_special(self) -> int:
        return features_module.NUM_SPECIAL

    def row_lengths(self, lengths: np.ndarray) -> np.ndarray:
        return np.minimum(lengths[:, 0], self.options.max_query_length) + lengths[:, 1]

    def num_windows(self, lengths: np.ndarray) -> np.ndarray:
        missing = lengths - (self.options.max_seq_length - self.num_special)
        return 1 + np.maximum(0, -(-missing // self.options.doc_stride))

    @classmethod
    def give_data(cls, run: Any, train: Any, validation: Any) -> None:
        if given_data.is_share(validation):
            rows = _rows(train)
            texts = [[str(row.get("context"))] for row in rows]
            sides = run.divided(rows, texts, validation)
        else:
            sides = [train] if validation is None else [train, validation]
        paths = [
            _path(data) or _squad_file(run, data, name)
            for data, name in zip(sides, ("train", "validation"), strict=False)
        ]
        run.values["train_file"] = paths[0]
        if validation is not None:
            run.values |= {"predict_file": paths[1], "do_eval": True}

    def _tfds_path(self, number, *, is_needed):
        """Returns the path of a split; None if it is neither present nor needed."""
        return named_datasets.part_file(
            self.options,
            number,
            question_answering_examples.tfds_lines,
            ".json",
            is_needed=is_needed,
        )

    def _with_stored_rules(self, record, stored):
        """Returns a record that chooses answers as stored, unless a flag differs."""
        values = {}
        for name in self.MAY_CHANGE:
            given = getattr(self.options, name)
            is_given = options_module.is_given(given)
            values[name] = given if is_given else getattr(stored, name)
        return dataclasses.replace(record, **values)

    def _check_threshold(self, record):
        """Refuses a threshold without effect, and tuning that lacks a requirement."""
        options = self.options
        may_have_no_answer = record.threshold is not None
        if options.null_score_diff_threshold and not may_have_no_answer:
            raise ValueError(
                "--null_score_diff_threshold="
                f"{options.null_score_diff_threshold:g} has no effect on a model that "
                "always answers; omit it, or train with --version_2_with_negative."
            )
        if not options.tune_threshold:
            return
        if not (self.trained or options.trains):
            raise ValueError(
                "--tune_threshold stores the threshold in a run, but "
                f"{options.output_dir} contains none; use the output_dir of the "
                "training."
            )
        if not (may_have_no_answer and self.squad_file.is_version_2):
            raise ValueError(
                "--tune_threshold needs a model trained with --version_2_with_negative "
                f"and a file of SQuAD 2.0; {self.squad_file.path} or the model is of "
                "version 1.1."
            )


def _record_beside(init_checkpoint):
    """Returns the record of the run that a checkpoint belongs to, or None.

    A record of another task is left to the check of the checkpoint's head.
    """
    for folder in (init_checkpoint, os.path.dirname(init_checkpoint)):
        path = os.path.join(folder, companion_files.TASK_FILE)
        if folder and files.exists(path):
            values = run_folder.RunFolder(folder).read_task()
            if values.get("task") == predictor.Record.KIND:
                return predictor.Record.from_dict(values, path)
    return None


def _path(data):
    """Returns the path of a SQuAD file; None for other data."""
    return None if given_data.is_table_or_in_memory(data) else os.fspath(data)


def _rows(data):
    """Returns questions as records, from memory, a table or a SQuAD file."""
    path = _path(data)
    if path is not None:
        squad_file = question_answering_examples.read_squad(path)
    elif isinstance(data, Mapping) and "data" in data:
        squad_file = question_answering_examples.parsed(data, "the data")
    else:
        return given_data.rows_of(data, question_answering_examples.FORMS)
    return question_answering_examples.records_of(squad_file)


def _squad_file(run, data, name):
    """Writes questions as a SQuAD file into the run's folder; returns its path."""
    content = question_answering_examples.squad_of(_rows(data))
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    return run.add_file(f"{name}.json", text.encode("utf-8"), trains=name == "train")
