"""Question answering on one page: train in stages, answer, evaluate, report."""

import dataclasses
import logging

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import model_card
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
from bert_tf.tasks.question_answering import windows as question_answering_windows
from bert_tf.tokenization import full
from bert_tf.training import estimates

logger = logging.getLogger(__name__)


def run(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Trains, answers and evaluates as the options say.

    Args:
        options: `question_answering.options.RunSquadOptions`.
        progress: see `bert_tf.progress`.

    Returns:
        What was reached, for the reader.

    Raises:
        ValueError, OSError: options, data or checkpoint do not fit together.
    """
    if options.dry_run:
        return dry_run_report(options, progress=progress)
    lines = []
    if options.ensemble:
        answers = ensemble_answers(options, progress=progress)
    else:
        answering = _last_stage(options, progress)
        if options.do_train:
            lines.append(fine_tuning_workflow.trained_line(answering.train()))
        if options.do_eval or options.do_predict:
            answers = answering.answers()
    if options.do_predict:
        paths = answers.write(options.output_dir)
        lines.append(f"Predictions are in {', '.join(paths)}.")
    if options.do_eval:
        if options.ensemble:
            results = answers.write_scores(options.output_dir)
        else:
            results = answering.evaluate(answers)
        lines += fine_tuning_workflow.score_lines(results)
    return "\n".join([*lines, fine_tuning_workflow.place_line(options)])


def train(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Trains; returns {"loss", "global_step"} of the last stage. See `run`."""
    return _last_stage(fine_tuning_workflow.only_training(options), progress).train()


def evaluate(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns what eval_results.txt holds. See `run`."""
    options = fine_tuning_workflow.only_evaluation(options)
    answering = QuestionAnswering(options, progress=progress)
    return answering.evaluate(answering.answers())


def dry_run_report(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Returns what the training would take, stage by stage."""
    reports = []
    for path in options.train_file:
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
    """Returns the answers of several trained runs together.

    Args:
        options: `ensemble` names the runs' folders.
        progress: see `bert_tf.progress`.

    Raises:
        ValueError: a folder holds no trained run, or the runs do not agree on whether
            there may be no answer.
    """
    members = []
    for run_dir in options.ensemble:
        member = dataclasses.replace(options, output_dir=run_dir, ensemble=())
        members.append(QuestionAnswering(member, progress=progress).answers())
    first = members[0]
    for run_dir, answers in zip(options.ensemble, members, strict=True):
        if (answers.threshold is None) != (first.threshold is None):
            raise ValueError(
                f"{run_dir} and {options.ensemble[0]} were not both trained with "
                "--version_2_with_negative; expected runs of one kind."
            )
    together = question_answering_predictions.averaged(
        [member.predictions for member in members], n_best_size=options.n_best_size
    )
    return dataclasses.replace(first, predictions=together, global_step=None)


class QuestionAnswering:
    """Data and model of one stage of a run, checked against each other.

    Args:
        options: `question_answering.options.RunSquadOptions`; the last train_file is
            the one that is trained on.
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
            self.setup.vocabulary, do_lower_case=self.setup.task.do_lower_case
        )
        self._windows: question_answering_windows.Windows | None = None

    def score_names(self) -> list[str]:
        """Returns the names of all scores that an evaluation has."""
        return answers_module.score_names(
            self.setup.require_squad_file(),
            may_be_none=self.setup.task.threshold is not None,
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
        return reached

    def evaluate(self, answers: answers_module.Answers) -> dict[str, float]:
        """Writes the answers' scores to eval_results.txt, and returns them."""
        results = answers.write_scores(self.options.output_dir)
        self._write_card(results=results, answers=answers)
        return results

    def _training_source(self):
        windows = self.training_windows()
        logger.info("  Num split examples = %d", len(windows))
        return source.WindowSource(windows)

    def training_windows(self) -> question_answering_windows.Windows:
        """Returns the windows of train_file."""
        return self._windows_of(self.setup.train_examples, is_training=True)

    def answers(self) -> answers_module.Answers:
        """Returns the answers to the questions of predict_file."""
        task, squad_file = self.setup.task, self.setup.require_squad_file()
        if self._windows is None:
            self._windows = self._windows_of(squad_file.examples, is_training=False)
        found = question_answering_predictions.predictions_of(
            self._windows,
            self._logits(),
            task.rules,
            alignment.Aligner(
                self.setup.vocabulary,
                do_lower_case=task.do_lower_case,
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

    def _write_card(self, **known):
        model_card.write(
            self.options.output_dir, card.card_of(self.options, self.setup, **known)
        )

    def _logits(self):
        flag = "predict_batch_size" if self.options.do_predict else "eval_batch_size"
        evaluation = fine_tuning_workflow.prediction(
            self.trainer,
            self.options,
            batch_size=getattr(self.options, flag),
            progress=self.progress,
        )
        keys = ("start_logits", "end_logits")
        found = evaluation.predict(source.WindowSource(self._windows), keys=keys)
        return [spans.without_padding(self._windows, found[key]) for key in keys]

    def _windows_of(self, examples, *, is_training):
        return features_module.convert_examples_to_features(
            examples,
            self._tokenizer,
            self.setup.task.sizes,
            is_training=is_training,
            progress=self.progress,
        )

    def _num_train_steps(self):
        """As in 2018: of questions, not of their windows."""
        if self.setup.train_examples is None:
            return 0
        num_questions = len(self.setup.train_examples)
        return fine_tuning_workflow.num_train_steps(
            num_questions, self.options, unit="questions"
        )


def _last_stage(options, progress):
    """Trains all stages but the last; returns the last one, ready to be run.

    Each stage is a run of its own below output_dir, which the next one starts from. So
    a run that was killed goes on in the stage where it was.
    """
    if not options.do_train or len(options.train_file) < 2:
        return QuestionAnswering(options, progress=progress)
    if rotation.latest(options.output_dir) is None:
        # A mistake in the last file is to show before the first one is trained on.
        for path in options.train_file:
            run_setup.read_training_examples(options, path)
    stages = zip(options.stage_dirs, options.train_file[:-1], strict=True)
    for number, (stage_dir, path) in enumerate(stages, start=1):
        values = {"output_dir": stage_dir, "train_file": (path,)}
        values |= {"do_eval": False, "do_predict": False}
        stage = dataclasses.replace(options, **values)
        if rotation.latest(options.output_dir) is None:
            logger.info("Stage %d of %d: %s", number, len(options.train_file), path)
            QuestionAnswering(stage, progress=progress).train()
        if files.exists(stage_dir):
            options = dataclasses.replace(options, init_checkpoint=stage_dir)
    return QuestionAnswering(options, progress=progress)
