"""Runs any fine-tuning task: training, evaluation, prediction and search.

Each task declares its parts in a `task.Task`. Everything is read and checked before
the model is built, so that an error in any file is found before training.
"""

import dataclasses
import logging
import os
from typing import Any

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.data import answer_tables
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import run_setup as fine_tuning_run_setup
from bert_tf.fine_tuning import task as task_module
from bert_tf.fine_tuning import tasks
from bert_tf.fine_tuning import trial_estimates
from bert_tf.fine_tuning import trial_options
from bert_tf.fine_tuning import trials
from bert_tf.fine_tuning import workflow as fine_tuning_workflow
from bert_tf.training import estimates
from bert_tf.training import plot_data
from bert_tf.training import run_folder
from bert_tf.training import stopping

logger = logging.getLogger(__name__)

TABLE_FILE = "predictions.csv"


def run(
    options: Any, *, progress: progress_module.Progress = progress_module.silent
) -> str:
    """Does what the options of a task's tool say; returns a report.

    Args:
        options: of the tool.
        progress: see `bert_tf.progress`.

    Returns:
        The report. An `options.FailureReport` if --check found errors.

    Raises:
        ValueError, OSError: options, data or checkpoint are invalid.
        ImportError: the run needs a package that is not installed.
    """
    declaration = tasks.declaration(options.TASK)
    if options.check:
        return fine_tuning_checks.run(declaration, options, progress).report()
    if declaration.RUN is not None:
        return declaration.RUN(options, progress)
    return single_run(options, progress)


def single_run(options: Any, progress: progress_module.Progress) -> str:
    """Runs a task in one stage, or searches; returns a report."""
    has_trials = isinstance(options, trial_options.TrialOptions) and (
        options.has_trials()
    )
    if has_trials and options.dry_run:
        return trial_estimates.report(
            options.trials(), lambda trial: Run(trial, progress=progress).estimate
        )
    lines = []
    with run_folder.locked(options):
        if has_trials:
            lines.append(_search(options, progress))
            if not options.do_predict:
                return "\n".join([*lines, fine_tuning_workflow.place_line(options)])
            # The files of the best run are now in output_dir, like those of one run.
            options = options.single_run(do_train=False, do_eval=False)
        one = Run(options, progress=progress)
        lines.append(fine_tuning_workflow.run(one, options))
    return "\n".join(lines)


def train(
    options: Any, *, progress: progress_module.Progress = progress_module.silent
) -> dict[str, float]:
    """Trains; returns {"loss", "global_step"}. See `run`."""
    options = _without_search(options).only_training()
    with run_folder.locked(options):
        return Run(options, progress=progress).train()


def evaluate(
    options: Any, *, progress: progress_module.Progress = progress_module.silent
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns the contents of eval_results.txt."""
    options = _without_search(options).only_evaluation()
    return Run(options, progress=progress).evaluate()


def prepare(
    options: Any, *, progress: progress_module.Progress = progress_module.silent
) -> task_module.Task:
    """Returns the task of a run, with its data and its checked setup.

    If the run trains, the options describe the task. Otherwise `task.json` in
    `output_dir` does, or the options if there is none.

    Raises:
        OSError, ValueError: a file is missing or damaged, or files and options
            contradict each other.
    """
    declaration = tasks.declaration(options.TASK)
    task = declaration(options, progress=progress)
    task.trained = fine_tuning_run_setup.trained_task(options, declaration.RECORD)
    if task.trained is not None:
        fine_tuning_run_setup.check_given_values(
            options, task.trained, declaration.FIXED
        )
    task.start = fine_tuning_run_setup.find_start(
        options, task.trained, progress=progress
    )
    task.setup = fine_tuning_run_setup.RunSetup(
        task=task.read(),
        start=task.start,
        data_sets=task.data_sets(),
        predictions_file=task.predictions_file,
        is_held_out=task.is_held_out,
    )
    head = fine_tuning_run_setup.head_to_apply(options, task.start.source)
    if head is not None:
        task.check_head(head)
    fine_tuning_run_setup.check(
        task.setup,
        options,
        longest_sequence=task.longest_sequence,
        may_change=declaration.MAY_CHANGE,
    )
    return task


class Run:
    """Data and model of one run.

    Args:
        options: of the run.
        progress: see `bert_tf.progress`.

    Attributes:
        options: of the run.
        task: the data.
        setup: of the run.
        trainer: of the run.
        lines: what the report says about the last evaluation, after its scores.
    """

    def __init__(
        self,
        options: Any,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self.progress = progress
        self.task = prepare(options, progress=progress)
        self.options = options = self.task.options
        self.setup = self.task.setup
        self.lines: list[str] = []
        num_steps = self._num_train_steps(options) if options.trains else 0
        self.trainer = fine_tuning_workflow.create_trainer(
            self.setup,
            options,
            num_steps,
            create_model=self.task.create_model,
            score_names=self.task.score_names,
            prediction_flag=self.task.PREDICTION_BATCH,
            progress=progress,
        )
        self.task.trainer = self.trainer
        self._training_data: task_module.TrainingData | None = None

    def dry_run_report(self) -> str:
        """Returns an estimate of the size and time of the training."""
        return str(self._estimate())

    def estimate(self, options: Any) -> estimates.Estimate:
        """Returns an estimate of another training of this model, from its first step.

        Args:
            options: with another learning rate, seed, batch size or number of epochs.
        """
        return self._estimate(options=options, num_steps=self._num_train_steps(options))

    def train(self) -> dict[str, float]:
        """Trains to the last step; returns {"loss", "global_step"}."""
        reached = fine_tuning_workflow.train(
            self.trainer,
            self.setup,
            self.options,
            self._training_source,
            counts=self.task.counts(),
            evaluate=lambda: dict(self.task.evaluate(self.trainer.predict).scores),
        )
        data = self._training_data
        self._write_card(
            training=self.trainer.facts(), training_data=data.facts if data else ()
        )
        if data is not None and data.lengths is not None:
            lengths = plot_data.lengths(data.lengths, self.setup.task.max_seq_length)
            plot_data.update(self.trainer.folder, {"lengths": lengths})
        return reached

    def evaluate(self) -> dict[str, float]:
        """Evaluates, writes eval_results.txt and returns its contents.

        The key `loss` is the mean over examples, as `eval_loss`. In the release it was
        the mean over batches.
        """
        data_set = self.setup.data_sets["dev"]
        self.task.before_final_evaluation()
        evaluation = self.task.evaluate(self.trainer.predict)
        results = fine_tuning_workflow.write_results(
            self.trainer, dict(evaluation.scores), data_set
        )
        details = self.task.details(evaluation)
        self._write_card(
            evaluated=model_card.Evaluated(
                results=results,
                data_set=data_set,
                wrong=details.wrong,
                num_examples=details.num_examples,
            )
        )
        if details.files:
            suffix = self.trainer.folder.suffix_of(
                run_folder.EVAL_RESULTS_FILE, data_set
            )
            self._write_files({n: [text] for n, text in details.files.items()}, suffix)
        plot_data.update(self.trainer.folder, details.plots, data_set)
        self.lines = list(details.lines)
        return results

    def predict(self) -> list[str]:
        """Writes the predictions; returns lines about them for the report."""
        evaluation = fine_tuning_workflow.prediction(
            self.trainer,
            self.options,
            batch_size=getattr(self.options, self.task.PREDICTION_BATCH),
            progress=self.progress,
        )
        predicted = self.task.predict(evaluation.predict)
        self.trainer.folder.create()
        data_set = self.setup.data_sets["test"]
        suffix = self.trainer.folder.suffix_of(self.setup.predictions_file, data_set)
        paths = self._write_files(predicted.files, suffix)
        if predicted.table is not None:
            name = self.task.file_name(TABLE_FILE, suffix)
            path = answer_tables.write(
                os.path.join(self.options.output_dir, name),
                self.options.predict_file,
                predicted.table,
                names=list(predicted.table[0]),
                header=predicted.header or None,
            )
            paths.append(path)
        lines = [f"Predictions are in {' and '.join(paths)}."]
        if not predicted.scores:
            return lines
        other_data = data_set if suffix else None
        results = fine_tuning_workflow.write_results(
            self.trainer, dict(predicted.scores), other_data
        )
        if not other_data:  # The card has the scores on the run's own data.
            scores = {name: (value,) for name, value in results.items()}
            model_card.rewrite_scores(self.trainer.folder, scores)
        return run_folder.score_lines(predicted.scores) + lines

    def _num_train_steps(self, options):
        num_rows = self.task.num_train_rows()
        return fine_tuning_workflow.num_train_steps(
            num_rows, options, unit=self.task.UNIT
        )

    def _estimate(self, **values):
        return estimates.estimate(
            self.trainer,
            sequence_length=self.setup.task.max_seq_length,
            sequences_per_example=self.task.sequences_per_example(),
            **values,
        )

    def _training_source(self):
        self._training_data = self.task.training_data()
        for fact in self._training_data.facts:
            logger.info("  %s", fact)
        return self._training_data.source

    def _write_card(self, **known):
        card = dataclasses.replace(self.task.card(), **known)
        model_card.write(self.trainer.folder, card)

    def _write_files(self, texts, suffix):
        """Writes result files; returns their paths."""
        paths = []
        for name, pieces in texts.items():
            name = self.task.file_name(name, suffix)
            path = os.path.join(self.options.output_dir, name)
            with files.complete_or_absent(path) as file:
                file.writelines(pieces)
            paths.append(path)
        return paths


def _without_search(options):
    if isinstance(options, trial_options.TrialOptions):
        return options.single_run()
    return options


def _search(options, progress):
    """Runs all runs of a search; returns a report."""

    def run_one(trial):
        one = Run(dataclasses.replace(trial, do_predict=False), progress=progress)
        stopping.check_metric(options.best_metric, one.task.score_names())
        one.train()
        return one.evaluate()

    declaration = tasks.declaration(options.TASK)
    return trials.run(
        options,
        run_one,
        data_sets=lambda trial: declaration(trial).data_sets(),
        more_results=declaration(options).more_results(),
    )
