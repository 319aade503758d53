"""The workflow of classification: train, evaluate, predict, report."""

import dataclasses
import logging
import os

from bert_tf import progress as progress_module
from bert_tf.data import answer_tables
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import trial_estimates
from bert_tf.fine_tuning import trials
from bert_tf.fine_tuning import workflow as fine_tuning_workflow
from bert_tf.modeling import distilled_classifier
from bert_tf.tasks.classification import card
from bert_tf.tasks.classification import class_scores
from bert_tf.tasks.classification import distillation
from bert_tf.tasks.classification import evaluation as evaluation_module
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import parts
from bert_tf.tasks.classification import plots
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import processors
from bert_tf.tasks.classification import run_setup
from bert_tf.tasks.classification import scores
from bert_tf.training import estimates
from bert_tf.training import plot_data
from bert_tf.training import result_files
from bert_tf.training import run_folder
from bert_tf.training import selection

logger = logging.getLogger(__name__)


def run(
    options: classification_options.RunClassifierOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Trains, evaluates and predicts as the options say; returns a report.

    Args:
        options: of the run.
        progress: see `bert_tf.progress`.

    Raises:
        ValueError, OSError: options, data or checkpoint are invalid.
    """
    if options.has_trials() and options.dry_run:
        return _trials_report(options, progress)
    with run_folder.locked(options):
        return _run(options, progress)


def _run(options, progress):
    lines = []
    if options.has_trials():
        lines.append(_run_trials(options, progress))
        if not options.do_predict:
            return "\n".join([*lines, fine_tuning_workflow.place_line(options)])
        # The files of the best run are now in output_dir, like those of a single run.
        options = options.single_run(do_train=False, do_eval=False)
    one = Classification(options, progress=progress)
    report = fine_tuning_workflow.run(one, options, more_scores=lambda: one.class_lines)
    return "\n".join([*lines, report])


def train(
    options: classification_options.RunClassifierOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Trains; returns {"loss", "global_step"}. See `run`."""
    options = fine_tuning_workflow.only_training(options.single_run())
    with run_folder.locked(options):
        return Classification(options, progress=progress).train()


def evaluate(
    options: classification_options.RunClassifierOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns the contents of eval_results.txt."""
    options = fine_tuning_workflow.only_evaluation(options.single_run())
    return Classification(options, progress=progress).evaluate()


def _trials_report(options, progress):
    """Returns an estimate for all runs of a search."""
    return trial_estimates.report(
        options.trials(),
        lambda trial_options: Classification(trial_options, progress=progress).estimate,
    )


def _run_trials(options, progress):
    """Runs all runs of a search; returns a report."""

    def run_one(trial_options):
        one = Classification(
            dataclasses.replace(trial_options, do_predict=False), progress=progress
        )
        selection.check_metric(options.best_metric, one.score_names())
        one.train()
        return one.evaluate()

    return trials.run(
        options,
        run_one,
        data_sets=run_setup.training_data_sets,
        more_results={
            run_folder.EVAL_RESULTS_FILE: (class_scores.FILE,),
            classification_predictions.JSON_LINES_FILE: _prediction_files(options),
        },
    )


def _prediction_files(options):
    """Returns the names of the files that belong to predictions.jsonl."""
    names = [
        classification_predictions.RELEASE_FILE,
        classification_predictions.TABLE_FILE,
    ]
    submitted = processors.data_of(options).processor.get_submission_files()
    for part, submission_file in submitted.items():
        names += [
            result_files.with_suffix(name, part.removeprefix("test"))
            for name in (names[0], classification_predictions.JSON_LINES_FILE)
        ]
        names.append(submission_file)
    return names


class Classification:
    """Data and model of one run.

    All tables are read before the model is built, so that an error in any of them is
    found before training.

    Args:
        options: of the run.
        progress: see `bert_tf.progress`.

    Attributes:
        examples: the examples of each set.
        setup: of the run.
        trainer: of the run.
        class_lines: the scores of each class in your own data, after an evaluation.
    """

    def __init__(
        self,
        options: classification_options.RunClassifierOptions,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self.options = options
        self.progress = progress
        self.setup = run_setup.prepare(options, progress=progress)
        self._parts = parts.Parts(options, self.setup, progress=progress)
        self.examples = self._parts.examples
        self.class_lines: list[str] = []
        self._train_facts: tuple[str, ...] = ()
        self.teacher = None
        if options.teacher and options.do_train:
            self.teacher = distillation.Teacher(options.teacher, self.setup.task)
        self.trainer = fine_tuning_workflow.create_trainer(
            self.setup,
            options,
            self._num_train_steps(),
            create_model=self._create_student if self.teacher else None,
            score_names=self.score_names,
            progress=progress,
        )

    def _create_student(self):
        return distilled_classifier.DistilledClassifier(
            self.setup.config,
            num_labels=self.setup.task.num_outputs,
            bilstm_on_top=self.setup.task.bilstm_on_top,
            temperature=self.options.distillation_temperature,
            weight=self.options.distillation_weight,
            dtype=self.options.dtype,
        )

    def score_names(self) -> list[str]:
        """Returns the names of all scores of an evaluation."""
        kind = self.setup.task.label_kind
        names = (*scores.names_of(self.setup.task_name, kind), "loss")
        return list(
            evaluation_module.named(
                {part: dict.fromkeys(names, 0.0) for part in self._parts.dev},
                self.setup.processor.get_eval_languages(),
            )
        )

    def train(self) -> dict[str, float]:
        """Trains to the last step; returns {"loss", "global_step"}."""
        self._parts.log_weights()
        reached = fine_tuning_workflow.train(
            self.trainer,
            self.setup,
            self.options,
            self._training_source,
            counts={"Num examples": len(self.examples["train"])},
            evaluate=self._eval_scores,
        )
        self._write_card(training=self.trainer.facts(), training_data=self._train_facts)
        lengths = self._parts.rows("train").lengths
        if lengths is not None:
            found = plot_data.lengths(lengths, self.setup.task.max_seq_length)
            plot_data.update(self.trainer.folder, {"lengths": found})
        return reached

    def evaluate(self) -> dict[str, float]:
        """Evaluates, writes eval_results.txt and returns its contents.

        The key `loss` is the mean over examples, as `eval_loss`. In the release it was
        the mean over batches.
        """
        results = fine_tuning_workflow.write_results(
            self.trainer, self._eval_scores(), self.setup.data_sets["dev"]
        )
        self._write_card(results=results, evaluated=self._evaluated)
        self._write_class_tables()
        self._write_plot_data()
        return results

    def _write_class_tables(self):
        """Writes the scores of each class of your own data."""
        found = [evaluated.class_table for evaluated in self._evaluated.values()]
        tables = [table for table in found if table is not None]
        if self.options.task_name is None and tables:
            text = "\n\n".join(tables)
            suffix = self.trainer.folder.suffix_of(
                run_folder.EVAL_RESULTS_FILE, self.setup.data_sets["dev"]
            )
            name = result_files.with_suffix(class_scores.FILE, suffix)
            class_scores.write(self.options.output_dir, name, text)
            self.class_lines = text.split("\n")

    def _write_plot_data(self):
        """Writes what the plots need."""
        task = self.setup.task
        baselines = evaluation_module.named(
            {
                part: plots.baseline_scores(
                    self.examples[part], task, self.setup.task_name
                )
                for part in self._evaluated
            },
            self.setup.processor.get_eval_languages(),
        )
        first = next(iter(self._evaluated.values()))
        plot_data.update(
            self.trainer.folder,
            {
                **first.plot_values,
                "baselines": {
                    name: plot_data.baseline(plot_data.MAJORITY_CLASS, value)
                    for name, value in baselines.items()
                },
            },
            self.setup.data_sets["dev"],
        )

    def predict(self) -> list[str]:
        """Writes the predictions; returns lines about them for the report."""
        evaluation = fine_tuning_workflow.prediction(
            self.trainer, self.options, progress=self.progress
        )
        self.trainer.folder.create()
        folder = self.options.output_dir
        suffix = self.trainer.folder.suffix_of(
            self.setup.predictions_file, self.setup.data_sets["test"]
        )
        submission_files = self._submission_files(suffix)
        paths = []
        for part in self._parts.test:
            examples = self.examples[part]
            answers = classification_predictions.answers_of(
                self._logits(part, evaluation), self.setup.task
            )
            guids = [example.guid for example in examples]
            paths += classification_predictions.write_predictions(
                folder, guids, answers, part=part, suffix=suffix
            )
            if self.options.predict_file is not None:
                paths.append(
                    self._write_table(self.options.predict_file, suffix, answers)
                )
            if part in submission_files:
                path = os.path.join(folder, submission_files[part])
                indices = [example.index for example in examples]
                paths.append(
                    classification_predictions.write_submission(path, indices, answers)
                )
        return [f"Predictions are in {' and '.join(paths)}."]

    def _write_table(self, predict_file, suffix, answers):
        """Writes the predictions beside the columns of the input; returns the path."""
        cells = [
            classification_predictions.cells_of(answer, self.setup.task)
            for answer in answers
        ]
        name = result_files.with_suffix(classification_predictions.TABLE_FILE, suffix)
        return answer_tables.write(
            os.path.join(self.options.output_dir, name),
            predict_file,
            cells,
            names=list(cells[0]),
        )

    def _submission_files(self, suffix):
        """Returns the names of the files for the GLUE server, by set."""
        names = self.setup.processor.get_submission_files()
        # The server's file names already contain the task: AX.tsv needs no suffix.
        if suffix == f"-{self.setup.data_sets['test'].name}":
            return names
        return {
            part: result_files.with_suffix(name, suffix) for part, name in names.items()
        }

    def dry_run_report(self) -> str:
        """Returns an estimate of the size and time of the training."""
        length = self.setup.task.max_seq_length
        return str(estimates.estimate(self.trainer, sequence_length=length))

    def estimate(
        self, options: classification_options.RunClassifierOptions
    ) -> estimates.Estimate:
        """Returns an estimate of another training of this model, from its first step.

        Args:
            options: with another learning rate, seed, batch size or number of epochs.
        """
        return estimates.estimate(
            self.trainer,
            sequence_length=self.setup.task.max_seq_length,
            options=options,
            num_steps=fine_tuning_workflow.num_train_steps(
                self._parts.num_train_rows(), options
            ),
        )

    def _logits(self, part, evaluation):
        source = self._parts.source(part)
        logits = evaluation.predict(source, keys=("logits",))["logits"]
        return self._parts.logits_of_examples(part, logits)

    def _eval_scores(self):
        self._evaluated = {
            part: evaluation_module.evaluated(
                self.examples[part],
                self._logits(part, self.trainer),
                self.setup.task,
                task_name=self.setup.task_name,
            )
            for part in self._parts.dev
        }
        return evaluation_module.named(
            {part: found.scores for part, found in self._evaluated.items()},
            self.setup.processor.get_eval_languages(),
        )

    def _write_card(self, **known):
        model_card.write(
            self.trainer.folder,
            card.card_of(self.options, self.setup, self.examples, **known),
        )

    def _num_train_steps(self):
        if "train" not in self.examples:
            return 0
        return fine_tuning_workflow.num_train_steps(
            self._parts.num_train_rows(), self.options
        )

    def _training_source(self):
        self._train_facts = self._parts.facts("train")
        for fact in self._train_facts:
            logger.info("  %s", fact)
        if self.teacher is None:
            return self._parts.source("train")
        logits = self.teacher.logits(
            self.examples["train"], self.options, progress=self.progress
        )
        return self._parts.source(
            "train", **{distilled_classifier.TEACHER_LOGITS: logits}
        )
