"""Question answering from start to end: train in stages, answer, evaluate, report."""

import dataclasses
import logging

import numpy as np

from bert_tf import files
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import run_report
from bert_tf.fine_tuning import workflow as fine_tuning_workflow
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import answers as answers_module
from bert_tf.tasks.question_answering import card
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import run_setup
from bert_tf.tasks.question_answering import source
from bert_tf.tasks.question_answering import spans
from bert_tf.tasks.question_answering import task as task_module
from bert_tf.tasks.question_answering import windows as question_answering_windows
from bert_tf.tokenization import full
from bert_tf.training import estimates
from bert_tf.training import plot_data
from bert_tf.training import result_files
from bert_tf.training import run_folder
from bert_tf.training import saving

logger = logging.getLogger(__name__)


def run(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Trains, predicts and evaluates as requested by the options.

    Returns:
        A report of the results.

    Raises:
        ValueError, OSError: a file is missing or damaged, or the options, data and
            checkpoint contradict each other.
    """
    if options.dry_run:
        return dry_run_report(options, progress=progress)
    with run_folder.locked(options):
        lines = _run(options, progress)
    return "\n".join([*lines, fine_tuning_workflow.place_line(options)])


def _run(options, progress):
    """Runs the requested steps; returns the lines of the report."""
    lines = []
    if options.ensemble:
        answers = ensemble_answers(options, progress=progress)
    else:
        answering = _last_stage(options, progress)
        if options.do_train:
            lines.append(fine_tuning_workflow.trained_line(answering.train()))
        if options.do_eval or options.do_predict:
            answers = answering.final_answers()
        if options.tune_threshold:
            lines.append(f"Stored the threshold {answers.threshold:g} in the run.")
    if options.do_predict:
        paths = answers.write(options.output_dir)
        lines.append(f"Predictions are in {', '.join(paths)}.")
    if options.do_eval:
        if options.ensemble:
            results = answers.write_scores(options.output_dir)
        else:
            results = answering.evaluate(answers)
        lines += run_folder.score_lines(results)
        lines += fine_tuning_workflow.other_data_lines(
            options.output_dir, result_files.file_data_set(answers.squad_file.path)
        )
    if not options.ensemble and (options.do_train or options.do_eval):
        run_report.write(answering.trainer.folder)
    return lines


def train(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Trains; returns {"loss", "global_step"} of the last stage. See `run`."""
    options = dataclasses.replace(options, tune_threshold=False)
    options = fine_tuning_workflow.only_training(options)
    with run_folder.locked(options):
        return _last_stage(options, progress).train()


def evaluate(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns the content of eval_results.txt."""
    options = fine_tuning_workflow.only_evaluation(options)
    answering = QuestionAnswering(options, progress=progress)
    return answering.evaluate(answering.final_answers())


def dry_run_report(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Returns an estimate of the time and memory that each stage needs."""
    reports = []
    for path in run_setup.train_paths(options):
        stage = options
        if len(options.train_file) > 1:
            stage = dataclasses.replace(options, train_file=(path,))
        answering = QuestionAnswering(stage, progress=progress)
        length = answering.setup.task.max_seq_length
        estimate = estimates.estimate(answering.trainer, sequence_length=length)
        reports.append(f"{path}\n{estimate}")
    return "\n\n".join(reports)


def ensemble_answers(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> answers_module.Answers:
    """Returns the answers of an ensemble of trained runs.

    Args:
        options: `ensemble` has the run folders.
        progress: see `bert_tf.progress`.

    Raises:
        ValueError: a folder contains no trained run, only some of the runs were
            trained with `version_2_with_negative`; the runs choose answers by
            different rules and the options do not set them; or output_dir contains a
            run.
    """
    _check_one_kind(options)
    if rotation.latest(options.output_dir) is not None:
        raise ValueError(
            f"{options.output_dir} contains a run, whose results those of the ensemble "
            "would replace; choose another --output_dir."
        )
    members = []
    for run_dir in options.ensemble:
        member = dataclasses.replace(options, output_dir=run_dir, ensemble=())
        one = QuestionAnswering(member, progress=progress)
        members.append(one.answers())
        n_best_size = one.setup.task.n_best_size  # The same for all members.
    together = question_answering_predictions.averaged(
        [member.predictions for member in members], n_best_size=n_best_size
    )
    return dataclasses.replace(members[0], predictions=together, global_step=None)


def _check_one_kind(options):
    first_dir, *other_dirs = options.ensemble
    first = task_module.Task.read(first_dir)
    for run_dir in other_dirs:
        task = task_module.Task.read(run_dir)
        if task.version_2_with_negative != first.version_2_with_negative:
            raise ValueError(
                f"{run_dir} and {first_dir} were not both trained with "
                "--version_2_with_negative; an ensemble needs runs of one kind."
            )
        for name in task_module.FOR_PREDICTING:
            values = [getattr(one, name) for one in (first, task)]
            is_given = options_module.is_given(getattr(options, name))
            if values[0] != values[1] and not is_given:
                raise ValueError(
                    f"{first_dir} has {name} {values[0]}, but {run_dir} has "
                    f"{values[1]}; pass --{name} to use one value for all runs."
                )


class QuestionAnswering:
    """The data and the model of one stage of a run.

    Args:
        options: the stage trains on the last `train_file`.
        progress: see `bert_tf.progress`.
    """

    def __init__(
        self,
        options: question_answering_options.RunSquadOptions,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self.options = options
        self.progress = progress
        self.setup = run_setup.prepare(options, progress=progress)
        self.trainer = fine_tuning_workflow.create_trainer(
            self.setup,
            options,
            self._num_train_steps(),
            score_names=self.score_names,
            progress=progress,
        )
        self._tokenizer = full.FullTokenizer(
            self.setup.vocabulary, **self.setup.task.tokenizer_arguments()
        )
        self._windows: question_answering_windows.Windows | None = None
        self._training_lengths: np.ndarray | None = None

    def score_names(self) -> list[str]:
        """Returns the names of the scores that an evaluation reports."""
        return answers_module.score_names(
            self.setup.require_squad_file(),
            allow_no_answer=self.setup.task.threshold is not None,
        )

    def train(self) -> dict[str, float]:
        """Trains to the last step; returns {"loss", "global_step"}."""
        reached = fine_tuning_workflow.train(
            self.trainer,
            self.setup,
            self.options,
            self._training_source,
            counts={"Num orig examples": len(self.setup.train_examples or ())},
            evaluate=lambda: self.answers().scores(),
        )
        self._write_card(training=self.trainer.facts())
        if self._training_lengths is not None:
            limit = self.setup.task.max_seq_length
            found = plot_data.lengths(self._training_lengths, limit)
            plot_data.update(self.trainer.folder, {"lengths": found})
        return reached

    def evaluate(self, answers: answers_module.Answers) -> dict[str, float]:
        """Writes the scores of answers to eval_results.txt and returns them."""
        results = answers.write_scores(self.options.output_dir)
        self._write_card(results=results, answers=answers)
        plot_data.update(
            self.trainer.folder,
            {"baselines": answers.baselines()},
            result_files.file_data_set(answers.squad_file.path),
        )
        return results

    def _training_source(self):
        windows = self.training_windows()
        logger.info("  Num split examples = %d", len(windows))
        self._training_lengths = windows.example_lengths
        return source.WindowSource(windows)

    def training_windows(self) -> question_answering_windows.Windows:
        """Returns the windows of the training questions."""
        return self._windows_of(self.setup.train_examples, is_training=True)

    def answers(self) -> answers_module.Answers:
        """Returns the answers to the questions of predict_file."""
        task, squad_file = self.setup.task, self.setup.require_squad_file()
        if self._windows is None:  # They are kept for all evaluations of a training.
            self._windows = self._windows_of(squad_file.examples, is_training=False)
        found = question_answering_predictions.predictions_of(
            self._windows,
            self._logits(self._windows),
            task.rules,
            alignment.Aligner(
                self.setup.vocabulary,
                **task.tokenizer_arguments(),
                verbose=self.options.verbose_logging,
            ),
            progress=self.progress,
        )
        return answers_module.Answers(
            squad_file=squad_file,
            predictions=found,
            threshold=task.threshold,
            global_step=self.trainer.step,
        )

    def final_answers(self) -> answers_module.Answers:
        """Returns the answers; with `tune_threshold`, stores the best threshold."""
        answers = self.answers()
        if self.options.tune_threshold:
            answers = answers.tuned()
            self.trainer.folder.update_task(
                {"null_score_diff_threshold": answers.threshold}
            )
        return answers

    def _write_card(self, **known):
        model_card.write(
            self.trainer.folder, card.card_of(self.options, self.setup, **known)
        )

    def _logits(self, windows):
        flag = "predict_batch_size" if self.options.do_predict else "eval_batch_size"
        evaluation = fine_tuning_workflow.prediction(
            self.trainer,
            self.options,
            batch_size=getattr(self.options, flag),
            progress=self.progress,
        )
        keys = ("start_logits", "end_logits")
        found = evaluation.predict(source.WindowSource(windows), keys=keys)
        return [spans.without_padding(windows, found[key]) for key in keys]

    def _windows_of(self, examples, *, is_training):
        return features_module.convert_examples_to_features(
            examples,
            self._tokenizer,
            self.setup.task.sizes,
            is_training=is_training,
            progress=self.progress,
        )

    def _num_train_steps(self):
        """Returns the number of steps; as in 2018, an epoch counts questions.

        A question can have several windows, so `num_train_epochs` epochs of questions
        are somewhat less than that many passes over the windows.
        """
        if not self.setup.train_examples:
            return 0
        num_questions = len(self.setup.train_examples)
        return fine_tuning_workflow.num_train_steps(
            num_questions, self.options, unit="questions"
        )


def _last_stage(options, progress):
    """Trains all stages but the last, which it returns.

    Each stage is a separate run in a folder below output_dir, and the next stage starts
    from its weights. So a run that was killed resumes in the interrupted stage. A stage
    that another one has started from is not trained further.
    """
    if not options.do_train or len(options.train_file) < 2:
        return QuestionAnswering(options, progress=progress)
    if rotation.latest(options.output_dir) is None:
        # Report an error in the last file before training on the first one.
        for path in options.train_file:
            run_setup.read_training_examples(options, path)
    folders = (*options.stage_dirs, options.output_dir)
    started = [n for n, d in enumerate(folders, start=1) if rotation.latest(d)]
    stages = zip(options.stage_dirs, options.train_file[:-1], strict=True)
    for number, (stage_dir, path) in enumerate(stages, start=1):
        values = {"output_dir": stage_dir, "train_file": (path,)}
        values |= dict.fromkeys(("do_eval", "do_predict", "tune_threshold"), False)
        stage = dataclasses.replace(options, **values)
        if number in started[:-1]:
            _check_finished(stage, progress)
        elif number >= max(started, default=0):
            logger.info("Stage %d of %d: %s", number, len(options.train_file), path)
            QuestionAnswering(stage, progress=progress).train()
        if files.exists(stage_dir):
            options = dataclasses.replace(options, init_checkpoint=stage_dir)
    return QuestionAnswering(options, progress=progress)


def _check_finished(stage, progress):
    """Refuses settings or data other than those of a stage that is not trained again.

    The next stage has already started from its weights.
    """
    setup = run_setup.prepare(stage, progress=progress)
    run_folder.RunFolder(stage.output_dir).check_same_run(
        setup.config,
        stage,
        training_data=setup.data_sets["train"],
        step=saving.read_step(str(rotation.latest(stage.output_dir))),
        has_steps_left=False,
    )
