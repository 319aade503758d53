"""Runs any fine-tuning task: training, evaluation, prediction and search.

Each task declares its parts in a `task.Task`. Everything is read and checked before
the model is built, so that an error in any file is found before training.
"""

import dataclasses
import logging
import os
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints.release import bundle
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import run_report
from bert_tf.fine_tuning import task as task_module
from bert_tf.fine_tuning import task_record
from bert_tf.fine_tuning import tasks
from bert_tf.fine_tuning import trials
from bert_tf.training import distribution
from bert_tf.training import loop
from bert_tf.training import plots
from bert_tf.training import run_file
from bert_tf.training import run_folder
from bert_tf.training import steps

logger = logging.getLogger(__name__)

# Of the results on a set. Those on other data have other names.
_MAIN_FILES = {
    "dev": run_folder.EVAL_RESULTS_FILE,
    "test": task_module.PREDICTIONS_FILE,
}


def run(options: Any) -> str:
    """Does what the options of a task's tool say; returns a report.

    It is an `options.FailureReport` if --check found errors.

    Raises:
        ValueError, OSError: options, data or checkpoint are invalid.
        ImportError: the run needs a package that is not installed.
    """
    declaration = tasks.declaration(options.TASK)
    if options.check:
        return fine_tuning_checks.run(declaration, options).report()
    has_trials = getattr(options, "sweep", None) is not None
    if has_trials and options.dry_run:
        first, *others = options.trials()
        report = Run(first.options).work()
        return f"{report}\nThis is the first of {1 + len(others)} runs."
    lines = []
    with run_folder.locked(options):
        if has_trials:
            lines.append(_search(options))
            if not options.do_predict:
                return "\n".join([*lines, f"The run is in {options.output_dir}."])
            # The files of the best run are now in output_dir, like those of one run.
            options = options.single_run(do_train=False, do_eval=False)
        lines.append(Run(options).work())
    return "\n".join(lines)


def prepare(options: Any) -> task_module.Task:
    """Returns the task of a run, with its data read and checked.

    If the run trains, the options describe the task. Otherwise `task.json` in
    `output_dir` does, or the options if there is none.

    Raises:
        OSError, ValueError: a file is missing or damaged, or files and options
            contradict each other.
    """
    declaration = tasks.declaration(options.TASK)
    task = declaration(options)
    task.find_start()
    task.record = task.read()
    task.identities = task.data_sets()
    if task.examples.get("train"):
        fine_tuning_checks.warn_of_training_data(task)
    head = task_record.head_to_apply(options, task.start.source)
    if head is not None:
        task.check_head(head)
    run_dir, source = options.output_dir, task.start.source
    has_checkpoint = bundle.latest(run_dir) is not None
    if source is not None and not has_checkpoint:
        task_record.check_label_order(task.record, options, source.head)
    if options.trains:
        if not has_checkpoint and not options_module.is_given(options.init_checkpoint):
            logger.info(
                "No init_checkpoint: starting from %s (small; pass bert-base-uncased "
                "for better scores).",
                options.init_checkpoint,
            )
        if not task_record.is_run(run_dir):
            task_record.check_segments(task.config, task.record.num_segments)
        elif has_checkpoint:
            task.record.check_resumes(run_dir, declaration.MAY_CHANGE)
            vocabulary = task.vocabulary.fingerprint
            run_folder.RunFolder(run_dir).check_same_vocabulary(vocabulary)
    companion_files.check_vocabulary_size(task.config, len(task.vocabulary))
    task.config.check_sequence_length(task.longest_sequence)
    return task


class Run:
    """The `task` with the data of one run, and its `trainer` with the model."""

    def __init__(self, options: Any):
        self.task = prepare(options)
        self.options = self.task.options
        self.trainer = self.task.trainer = self._create_trainer()
        self._lines: list[str] = []  # About the last evaluation, besides its scores.

    def work(self) -> str:
        """Trains, evaluates and predicts as the options say; returns a report."""
        options, lines = self.options, []
        if options.dry_run:
            source = self.task.training_data().source
            return steps.measure(self.trainer, source)
        if options.do_train:
            reached = self.train()
            step, loss = reached["global_step"], reached["loss"]
            lines.append(f"Trained to step {step}, loss {loss:.4f}.")
        if options.do_eval:
            results = self.evaluate()
            lines += run_report.score_lines(self.trainer.folder, results)
            lines += self._lines
        if options.do_predict:
            # Scores of the test set may already be among those in eval_results.txt.
            lines += [line for line in self.predict() if line not in lines]
        if options.do_train or options.do_eval:
            run_report.write_report(self.trainer.folder)
        return "\n".join([*lines, f"The run is in {options.output_dir}."])

    def train(self) -> dict[str, float]:
        """Trains to the last step; returns {"loss", "global_step"}.

        Raises:
            ValueError: output_dir contains a run with other settings or data.
        """
        task, trainer = self.task, self.trainer
        settings = self._settings()
        facts: tuple[str, ...] = ()
        if not trainer.may_train(settings):
            reached = trainer.nothing_left()
        else:
            counts = {
                **task.counts(),  # May refuse the data.
                "Batch size": self.options.train_batch_size,
                "Num steps": trainer.num_train_steps,
            }
            trainer.folder.write_settings(settings, step=trainer.step)
            logger.info("***** Running training *****")
            for name, value in counts.items():
                logger.info("  %s = %d", name, value)
            data = task.training_data()
            facts = data.facts
            for fact in facts:
                logger.info("  %s", fact)
            reached = trainer.train(
                data.source,
                evaluate=lambda: dict(task.evaluate(trainer.predict).scores),
            )
        self._write_card(training=trainer.facts(), training_data=facts)
        return reached

    def evaluate(self) -> dict[str, float]:
        """Evaluates, writes eval_results.txt and returns its contents.

        The key `loss` is the mean over examples, as `eval_loss`. In the release it was
        the mean over batches.
        """
        folder, data_set = self.trainer.folder, self.task.identities["dev"]
        suffix = folder.suffix_of(run_folder.EVAL_RESULTS_FILE, data_set)
        evaluation = self.task.evaluate(self.trainer.predict)
        results = self._write_results(evaluation.scores, data_set)
        plot_data = self.task.plot_data(evaluation)
        self._write_card(results=results, data_set=data_set)
        plots.update_data(folder, plot_data, data_set)
        self._lines = []
        if suffix:
            name = run_file.with_suffix(run_folder.EVAL_RESULTS_FILE, suffix)
            path = os.path.join(self.options.output_dir, name)
            self._lines.append(
                f"These scores are not on the run's own data; they are in {path}."
            )
        return results

    def predict(self) -> list[str]:
        """Writes the predictions; returns lines about them for the report."""
        batch_size = getattr(self.options, self.task.PREDICTION_BATCH)
        predicted = self.task.predict(self.task.prediction(batch_size).predict)
        folder, data_set = self.trainer.folder, self.task.identities["test"]
        folder.create()
        suffix = folder.suffix_of(task_module.PREDICTIONS_FILE, data_set)
        paths = self._write_files(predicted.files, suffix)
        lines = [f"Predictions are in {' and '.join(paths)}."]
        if not predicted.scores:
            return lines
        other_data = data_set if suffix else None
        results = self._write_results(predicted.scores, other_data)
        if not other_data:  # The card has the scores on the run's own data.
            run_report.rewrite_scores(folder, results)
        return run_folder.score_lines(predicted.scores) + lines

    def _create_trainer(self):
        """Returns the trainer, with its model built and its weights loaded."""
        options, task = self.options, self.task
        num_steps = 0
        if options.trains:
            num_rows = task.num_train_rows()
            num_steps = num_train_steps(num_rows, options, unit=task.UNIT)
        for name in options.sets_to_read:
            # Computed now, because the file may change during the training.
            _ = task.identities[name].checksum
        if options.evaluates and not task.is_held_out:
            run_file.warn_if_trained_on(
                options.output_dir,
                task.identities["dev"],
                task.identities["train"] if options.trains else None,
            )
        trainer = loop.Trainer(
            task.create_model,
            options,
            num_train_steps=num_steps,
            num_warmup_steps=int(num_steps * options.warmup_proportion),
            best_metrics=trials.BEST_METRICS,
            source=task.start.source,
        )
        batches = [("eval_batch_size", options.do_eval)]
        for name, is_used in [*batches, (task.PREDICTION_BATCH, options.do_predict)]:
            if is_used:
                size = getattr(options, name)
                distribution.check_batch_size(name, size, trainer.strategy)
        return trainer

    def _settings(self):
        """Returns what the folder records of a run before it trains."""
        task, source = self.task, self.task.start.source
        return run_folder.Settings(
            task=task.record.to_dict(),
            config=task.config,
            vocabulary=task.vocabulary,
            options=self.options,
            training_data=task.identities["train"],
            # The data sets whose result files get no suffix.
            results={
                file_name: task.identities[name]
                for name, file_name in _MAIN_FILES.items()
                if name in task.identities
            },
            hub_name=None if source is None else source.hub_name,
        )

    def _write_results(
        self, scores: Mapping[str, float], data_set: run_file.DataSet | None
    ) -> dict[str, float]:
        """Writes eval_results.txt and returns its contents.

        Scores of the development set begin with `eval_`, those of the test set with
        `test_`. Writing one kind keeps the other if it belongs to the same step.
        `eval_loss` is also written as `loss`, as in the release.
        """
        folder, step = self.trainer.folder, self.trainer.step
        results = {**scores, "global_step": step}
        if "eval_loss" in results:
            results["loss"] = results["eval_loss"]
        suffix = folder.suffix_of(run_folder.EVAL_RESULTS_FILE, data_set)
        earlier = folder.read_eval_results(suffix)
        if earlier.get("global_step") == step:
            prefixes = {name[:5] for name in scores}  # "eval_" or "test_".
            others = {k: v for k, v in earlier.items() if k[:5] not in prefixes}
            results = others | results
        folder.create()
        folder.write_eval_results(results, data_set)
        return results

    def _write_card(self, **known):
        card = dataclasses.replace(self.task.card(), **known)
        run_report.write_card(self.trainer.folder, card)

    def _write_files(self, texts, suffix):
        """Writes result files; returns their paths."""
        paths = []
        for name, pieces in texts.items():
            paths.append(self._path(name, suffix))
            with files.complete_or_absent(paths[-1]) as file:
                file.writelines(pieces)
        return paths

    def _path(self, name, suffix):
        return os.path.join(self.options.output_dir, run_file.with_suffix(name, suffix))


def num_train_steps(
    num_rows: int, options: fine_tuning_options.TaskOptions, *, unit: str = "examples"
) -> int:
    """Returns the number of optimizer steps, computed as in 2018.

    The rows of all epochs form one sequence, which is divided into batches. Only the
    last batch of the whole sequence may be incomplete. It is dropped.

    Args:
        num_rows: rows per epoch.
        options: of the run.
        unit: of `num_rows`, for the error message.

    Raises:
        ValueError: all epochs together do not fill one batch.
    """
    batch_size, epochs = options.train_batch_size, options.num_train_epochs
    num_steps = int(num_rows / batch_size * epochs)
    if num_steps == 0:
        raise ValueError(
            f"{num_rows} {unit} × {epochs:g} epochs do not fill one batch of "
            f"{batch_size}; lower --train_batch_size or raise --num_train_epochs."
        )
    return num_steps


def _search(options):
    """Runs all runs of a search; returns a report."""

    def run_one(trial):
        one = Run(dataclasses.replace(trial, do_predict=False))
        one.train()
        return one.evaluate()

    declaration = tasks.declaration(options.TASK)
    return trials.run(
        options, run_one, data_sets=lambda trial: declaration(trial).data_sets()
    )
