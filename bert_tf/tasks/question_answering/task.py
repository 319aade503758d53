"""The declaration of question answering: its data, scores and answers."""

import dataclasses
import functools
import logging
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import options as options_module
from bert_tf.checkpoints.release import bundle
from bert_tf.data import text_checks
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task as task_module
from bert_tf.fine_tuning import task_record
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import predictions as predictions_module
from bert_tf.tasks.question_answering import scores as scores_module
from bert_tf.tokenization import full
from bert_tf.training import plots

logger = logging.getLogger(__name__)

LOGITS = ("start_logits", "end_logits")


class Predictor(fine_tuning_predictor.Predictor):
    """A trained question answering model; see `fine_tuning.predictor.Predictor`."""

    RECORD = predictions_module.Record
    UNIT = "questions"
    TOKENIZER = full.FullTokenizer
    # The graph of a SavedModel divides contexts and answers as `predict` does.
    WORD_SEPARATORS = examples_module.WORD_SEPARATORS
    NO_CANDIDATE = predictions_module.NO_CANDIDATE

    task: predictions_module.Record

    @classmethod
    def record_of_checkpoint(
        cls, settings: fine_tuning_predictor.LoadSettings
    ) -> predictions_module.Record:
        """See `Predictor.record_of_checkpoint`. The settings are the release's."""
        values = settings.task_values(longest=384)
        room = values["max_seq_length"] - features_module.NUM_SPECIAL
        max_query_length = min(64, room // 2)
        return predictions_module.Record(
            doc_stride=max(1, min(128, (room - max_query_length) // 2)),
            max_query_length=max_query_length,
            version_2_with_negative=False,
            n_best_size=20,
            max_answer_length=30,
            null_score_diff_threshold=0.0,
            **values,
        )

    def predict(
        self,
        inputs: Iterable[Sequence[str]],
        *,
        null_score_diff_threshold: float | None = None,
    ) -> list[dict[str, Any]]:
        """Returns the answers to questions.

        Args:
            inputs: (question, context) pairs.
            null_score_diff_threshold: for a model of SQuAD 2.0: there is no answer if
                `no_answer_score - score` is higher. None: the value in task.json. A
                checkpoint without a run has no such value and always answers.

        Returns:
            One dict per pair: `answer`, "" if there is none; `start` and `end`, such
            that the answer is context[start:end] with one space between words; `score`
            of the best answer; `no_answer_score`.

        Raises:
            ValueError: an input is not such a pair, its context is blank or too long,
                or there is a threshold although the model always answers.
        """
        task = self.task
        if null_score_diff_threshold is not None:
            # A checkpoint does not say whether it was trained on SQuAD 2.0.
            if self._settings.has_task_file and task.threshold is None:
                raise ValueError(
                    "null_score_diff_threshold has no effect on a model that always "
                    "answers; omit it, or train with version_2_with_negative."
                )
            task = dataclasses.replace(
                task,
                version_2_with_negative=True,
                null_score_diff_threshold=null_score_diff_threshold,
            )
        return self._answered(
            self.items(inputs),
            functools.partial(self._answers, task),
            # Questions about one context stay together, so it is tokenized once.
            length_of=lambda one: len(one.context.text),
            # A long context has many windows, which are in memory at once.
            batches_sorted=4,
        )

    def items(self, inputs: Iterable[Any]) -> Any:
        """See `Predictor.items`. Contexts that are blank or too long are refused."""
        return examples_module.given_questions(inputs)

    def outputs(self, features: Mapping[str, Any]) -> Any:
        """See `Predictor.outputs`."""
        return self.model(features)

    def _answers(self, task, examples):
        windows = features_module.convert_examples_to_features(
            examples, self.tokenizer, task.sizes, is_training=False
        )
        logits = self._window_logits(windows)
        return [
            predictions_module.answer_record(one, task.threshold)
            for one in _predictions(windows, logits, task)
        ]

    def _window_logits(self, windows):
        shape = (len(windows), self.task.max_seq_length)
        logits = {name: np.zeros(shape, np.float32) for name in LOGITS}
        for batch in fine_tuning_predictor.row_batches(
            windows.lengths, self.batch_size
        ):
            numbers = np.array(batch)
            longest = int(windows.lengths[numbers].max())
            columns = windows.rows(numbers)
            outputs = self.apply(
                {name: column[:, :longest] for name, column in columns.items()}
            )
            for name in LOGITS:
                logits[name][numbers, :longest] = np.asarray(outputs[name])
        return logits


def _predictions(windows, logits, record, *, verbose=False):
    """Returns the predictions of windows, without those at padding."""
    aligner = alignment.Aligner(
        windows.vocabulary, verbose=verbose, **record.tokenizer_arguments()
    )
    start_logits, end_logits = (
        predictions_module.without_padding(windows, logits[name]) for name in LOGITS
    )
    return predictions_module.predictions_of(
        windows, (start_logits, end_logits), record, aligner
    )


class QuestionAnswering(task_module.Task):
    """Which part of a text answers a question? SQuAD 1.1 and 2.0.

    "dev" and "test" are the same file, `squad_file`.
    """

    RECORD = predictions_module.Record
    PREDICTOR = Predictor
    PIPELINE_TAG = "question-answering"
    FIXED = (
        "max_seq_length",
        "do_lower_case",
        "doc_stride",
        "max_query_length",
        "version_2_with_negative",
        "bilstm_on_top",
    )
    # Only predicting reads these.
    MAY_CHANGE = ("n_best_size", "max_answer_length", "null_score_diff_threshold")
    UNIT = "questions"  # As in 2018; an epoch has more windows than questions.

    options: question_answering_options.RunSquadOptions
    squad_file: examples_module.SquadFile
    # The predictions of the last evaluated step, by step.
    _predicted: Mapping[int, list[predictions_module.Prediction]] = {}

    def paths(self) -> dict[str, str | None]:
        options = self.options
        paths = {"train": options.train_file, "dev": options.predict_file}
        return paths if options.check else {**paths, "test": options.predict_file}

    def read_set(
        self, name: str, path: str, *, broken_rows: list[str] | None = None
    ) -> list[examples_module.SquadExample]:
        squad_file = examples_module.read_squad(path)
        if broken_rows is not None:
            return squad_file.examples
        if name == "train":
            return examples_module.training_examples(
                squad_file, version_2_with_negative=self.options.version_2_with_negative
            )
        if self.options.evaluates and not squad_file.has_answers:
            raise ValueError(
                f"{path} has questions without answers, so it cannot be "
                "used for evaluation; use a file with answers, or omit --do_eval and "
                "--eval_every_steps."
            )
        if self.options.evaluates:
            scores_module.warn_without_spaces(squad_file)
        self.squad_file = squad_file
        return squad_file.examples

    def read(self) -> predictions_module.Record:
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

    def new_record(self) -> predictions_module.Record:
        options, of_tokenizer = self.options, self.start.tokenizer_arguments()
        names = [field.name for field in dataclasses.fields(self.RECORD)]
        values = {n: getattr(options, n) for n in names if n not in of_tokenizer}
        record = predictions_module.Record(**values, **of_tokenizer)
        if options.trains:
            if bundle.latest(options.output_dir) is None:
                return record
            # Repeating a command must not lose a threshold that was stored since.
            stored = predictions_module.Record.read(options.output_dir)
            return self._with_stored_rules(record, stored)
        source = self.start.source
        beside = None if source is None else task_record.beside(source, self.RECORD)
        if beside is None:
            return record
        record = self._with_stored_rules(record, beside)
        if beside.version_2_with_negative:
            record = dataclasses.replace(record, version_2_with_negative=True)
        return record

    def applied_record(self) -> predictions_module.Record:
        return self._with_stored_rules(self.trained, self.trained)

    def counts(self) -> dict[str, int]:
        return {"Num orig examples": len(self.examples["train"])}

    def training_data(self) -> task_module.TrainingData:
        windows = self.features("train")
        logger.info("  Num split examples = %d", len(windows))
        return task_module.TrainingData(source=features_module.WindowSource(windows))

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

    def predictions(self) -> list[predictions_module.Prediction]:
        """Returns the predictions of the current weights for `squad_file`."""
        options, step = self.options, self.trainer.step
        if step not in self._predicted:
            evaluation = self.prediction(
                options.predict_batch_size
                if options.do_predict
                else options.eval_batch_size
            )
            windows = self.features("test")
            source = features_module.WindowSource(windows)
            logits = evaluation.predict(source, keys=LOGITS)
            predictions = _predictions(
                windows, logits, self.record, verbose=options.verbose_logging
            )
            self._predicted = {step: predictions}  # Only the last ones are kept.
        return self._predicted[step]

    def evaluate(self, predict: task_module.Predict) -> task_module.Evaluation:
        """Returns the scores of `predictions`. The outputs are the answers by id."""
        predictions, threshold = self.predictions(), self.record.threshold
        return task_module.Evaluation(
            scores=scores_module.prediction_scores(
                self.squad_file, predictions, threshold
            ),
            outputs={one.qas_id: one.answer(threshold).text for one in predictions},
        )

    def plot_data(self, evaluation: task_module.Evaluation) -> dict[str, Any]:
        answers, threshold = evaluation.outputs, self.record.threshold
        baselines: dict[str, Any] = {}
        if threshold is not None:
            without = scores_module.eval_scores(
                self.squad_file, dict.fromkeys(answers, "")
            )
            baselines = {
                name: plots.baseline("no answer", without[name], perfect=100)
                for name in ("eval_exact_match", "eval_f1")
            }
        return {"baselines": baselines}

    def predict(self, predict: task_module.Predict) -> task_module.Predicted:
        contents = predictions_module.file_contents(
            self.predictions(), self.record.threshold
        )
        return task_module.Predicted(
            files={name: [text] for name, text in contents.items()}
        )

    def summary(self) -> str:
        no_answer = "" if self.record.threshold is None else ", or that there is none"
        return f"Finds the answer to a question in a text{no_answer}."

    def item(self, example: examples_module.SquadExample) -> Any:
        return text_checks.Item(
            texts=(example.question_text, example.context.text),
            label=None,  # A question may have several correct answers.
            place=f"question {example.qas_id}",
        )

    def check_items(self, findings: text_checks.Findings, items: Any) -> None:
        """Checks that answers occur in their contexts, as training and scoring do."""
        negative = self.options.version_2_with_negative
        for name, examples in self.examples.items():
            path, trains = str(self.paths()[name]), name == "train"
            examples_module.check_answers(
                findings, examples, path, negative if trains else None
            )

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
            rows = examples_module.given_rows(train)
            texts = [[str(row.get("context"))] for row in rows]
            sides = run.divided(rows, texts, validation)
        else:
            sides = [train] if validation is None else [train, validation]
        paths = [
            examples_module.given_file(run, data, name)
            for data, name in zip(sides, ("train", "validation"), strict=False)
        ]
        run.values["train_file"] = paths[0]
        if validation is not None:
            run.values |= {"predict_file": paths[1], "do_eval": True}

    def _check_threshold(self, record):
        """Refuses a threshold without effect."""
        threshold = self.options.null_score_diff_threshold
        if threshold and record.threshold is None:
            raise ValueError(
                f"--null_score_diff_threshold={threshold:g} has no effect on a model "
                "that always answers; omit it, or train with --version_2_with_negative."
            )

    def _with_stored_rules(self, record, stored):
        """Returns a record that chooses answers as stored, unless a flag differs."""
        values = {}
        for name in self.MAY_CHANGE:
            given = getattr(self.options, name)
            is_given = options_module.is_given(given)
            values[name] = given if is_given else getattr(stored, name)
        return dataclasses.replace(record, **values)
