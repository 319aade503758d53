"""run_pretraining on one page: check the inputs, train, evaluate, report."""

import dataclasses
import functools
import logging
import math
from collections.abc import Sequence
from typing import Any

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import run_report
from bert_tf.pretraining import baselines
from bert_tf.pretraining import continuation
from bert_tf.pretraining import dynamic_masking
from bert_tf.pretraining import examples as pretraining_examples
from bert_tf.pretraining import model_setup
from bert_tf.pretraining import objectives
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import phases
from bert_tf.pretraining import scores
from bert_tf.training import distribution
from bert_tf.training import estimates
from bert_tf.training import loop
from bert_tf.training import result_files
from bert_tf.training import run_folder
from bert_tf.training import selection
from bert_tf.training import timing

logger = logging.getLogger(__name__)


def run(
    options: pretraining_options.RunPretrainingOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Trains and evaluates as `options.do_train` and `options.do_eval` say.

    Args:
        options: what to do.
        progress: see `bert_tf.progress`.

    Returns:
        A report for the user.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: options, examples and checkpoint contradict each other.
    """
    if not (options.do_train or options.do_eval or options.dry_run):
        raise options_module.OptionError(
            "Nothing to do: pass --do_train, --do_eval or --dry_run."
        )
    with run_folder.locked(options):
        if not options.phase:
            return _run(options, progress)
        runs = phases.phase_options(options)
        first_steps = phases.first_steps(options, runs)
        lines = []
        for number, first_step in enumerate(first_steps):
            phase, later = runs[number], runs[number + 1 :]
            with run_folder.locked(phase):
                lines.append(_run(phase, progress, first_step, later))
        return "\n".join(lines)


def _run(options, progress, first_step=0, later_phases=()):
    pretraining = Pretraining(options, progress=progress)
    if options.dry_run:
        return pretraining.dry_run_report(first_step)
    lines = []
    if options.do_train:
        reached = pretraining.train(later_phases)
        lines.append(
            f"Trained to step {reached['global_step']}, loss {reached['loss']:.4f}."
        )
    if options.do_eval:
        results = pretraining.evaluate()
        lines += run_folder.score_lines(results)
    if options.do_train or options.do_eval:
        run_report.write(pretraining.trainer.folder)
    return "\n".join([*lines, f"The run is in {options.output_dir}."])


def train(
    options: pretraining_options.RunPretrainingOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, Any]:
    """Trains; returns {"loss", "global_step"} of the last phase. See `run`."""
    options = dataclasses.replace(options, do_train=True, dry_run=False)
    with run_folder.locked(options):
        runs = phases.phase_options(options) or [options]
        for number, phase in enumerate(runs, start=1):
            reached = Pretraining(phase, progress=progress).train(runs[number:])
    return reached


def evaluate(
    options: pretraining_options.RunPretrainingOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns the release's six scores. See `run`."""
    options = dataclasses.replace(options, do_train=False, do_eval=True, dry_run=False)
    last = (phases.phase_options(options) or [options])[-1]
    return Pretraining(last, progress=progress).evaluate()


class Pretraining:
    """Examples and model of one run of pretraining, checked against each other.

    Args:
        options: what to do.
        progress: see `bert_tf.progress`.

    Raises:
        OSError, ValueError: as `run`.
    """

    def __init__(
        self,
        options: pretraining_options.RunPretrainingOptions,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self.options = options
        self._progress = progress
        start = model_setup.find_start(options, progress=progress)
        config = model_setup.override(
            start.config,
            options.config_overrides,
            has_weights=start.source is not None,
        )
        self.config = objectives.with_attention(config, options.objective)
        self.vocabulary = start.vocabulary
        self._hub_name = None if start.source is None else start.source.hub_name
        self.config.check_sequence_length(options.max_seq_length)
        self.records = self._open(options.input_file, start.source)
        if self.vocabulary is None:
            self.vocabulary = pretraining_examples.recorded_vocabulary(
                self.records, start.source
            )
        self.eval_records = self.records
        if options.eval_input_file:
            self.eval_records = self._open(options.eval_input_file, start.source)
        pretraining_examples.check_alike(self.records, self.eval_records)
        objectives.check_records(self.config, self.records)
        pretraining_examples.check_options(options, self.records, self.eval_records)
        if options.do_train and options.eval_every_steps:
            selection.check_metric(options.best_metric, self._score_names())
        self._trains = options.do_train or options.dry_run
        if self._trains:
            self._check_continuation(start.source)
        self.trainer = self._create_trainer(start.source, progress)
        if self.trainer.resumed:
            self._check_same_vocabulary()
            self._check_same_casing()
        elif self._trains and options.continue_schedule and start.source is not None:
            continuation.warn_about_jump(options, start.source, self.trainer.step)
        if options.do_eval or (options.do_train and options.eval_every_steps):
            result_files.warn_if_trained_on(
                options.output_dir,
                self._evaluation_data,
                self._training_data if self._trains else None,
            )
        if options.do_eval:
            distribution.check_batch_size(
                "eval_batch_size", options.eval_batch_size, self.trainer.strategy
            )

    def _create_trainer(self, source, progress):
        options = self.options
        num_train_steps, time_limit = options.num_train_steps, None
        if options.max_train_minutes is not None:
            num_train_steps = timing.NO_STEP_LIMIT
            time_limit = timing.TimeLimit(
                minutes=options.max_train_minutes,
                warmup_proportion=options.warmup_proportion,
            )
        return loop.Trainer(
            lambda: objectives.create_model(
                self.config,
                self.records,
                options.dtype,
            ),
            options,
            num_train_steps=num_train_steps if self._trains else 0,
            num_warmup_steps=options.num_warmup_steps,
            num_decay_steps=options.schedule_steps,
            continues_source=options.continue_schedule,
            time_limit=time_limit,
            source=source,
            progress=progress,
        )

    def train(
        self,
        later_phases: Sequence[pretraining_options.RunPretrainingOptions] = (),
    ) -> dict[str, Any]:
        """Trains to num_train_steps; returns {"loss", "global_step"}.

        Args:
            later_phases: phases that start from the weights of this run.
        """
        trainer, folder = self.trainer, self.trainer.folder
        self._check_later_phases(later_phases)
        training_data = self._training_data
        trainer.workers.check_same_data(training_data.checksum)
        if trainer.resumed:
            has_steps_left = trainer.has_steps_left()
            folder.check_same_run(
                self.config,
                self.options,
                training_data=training_data,
                step=trainer.step,
                has_steps_left=has_steps_left,
            )
            if not has_steps_left:
                # A kill may have come between the last checkpoint and this record.
                folder.mark_finished(trainer.step)
                return trainer.nothing_left()
        folder.create()
        self._claim_results()
        folder.write_settings(
            task=self._task(),
            config=self.config,
            vocabulary=self.vocabulary,
            options=self.options,
            training_data=training_data,
            hub_name=self._hub_name,
            # Steps of a continued run were trained in its own folder.
            step=trainer.step if trainer.resumed else 0,
        )
        source = self._training_source()
        if self.options.eval_every_steps:
            self._write_baselines()
        reached = trainer.train(source, evaluate=self._evaluation_scores)
        folder.mark_finished(trainer.step)
        return reached

    def _check_later_phases(self, later_phases):
        """Finds errors of later phases before the training, not after it.

        Refuses steps that a phase which has already started would not contain.
        """
        if not (later_phases and self.trainer.has_steps_left()):
            return
        for phase in later_phases:
            if rotation.latest(phase.output_dir) is None:
                self.config.check_sequence_length(phase.max_seq_length)
                pretraining_examples.check_later(phase, self.config, self.vocabulary)
            else:
                raise ValueError(
                    f"{self.options.output_dir} has steps left to train, but "
                    f"{phase.output_dir} has already started from its weights and "
                    "would not contain them; pass the earlier number of steps for this "
                    "phase, or choose another --output_dir."
                )

    def _check_continuation(self, source):
        """Checks the checkpoint whose schedule is continued; see `continuation`."""
        if rotation.latest(self.options.output_dir) is not None:
            continuation.check_resumed(self.options)
        elif self.options.continue_schedule:
            continuation.check(self.options, source)

    def _check_same_casing(self):
        """Refuses to train or evaluate a run on text that has a different casing."""
        folder = self.trainer.folder
        recorded = companion_files.read_task(folder.path).get("do_lower_case")
        now = self._task()["do_lower_case"]
        if None not in (recorded, now) and recorded != now:
            raise ValueError(
                f"{folder.path} contains a run with do_lower_case={recorded}, but "
                f"{self.records.paths[0]} has {now} now; use the same casing, "
                "or another --output_dir."
            )

    def _claim_results(self):
        """Records the evaluation data of this command as the run's own."""
        folder, data_set = self.trainer.folder, self._evaluation_data
        if self.options.do_eval or self.options.eval_every_steps:
            own = {run_folder.EVAL_RESULTS_FILE: data_set}
            folder.claim_results(own, is_new=not self.trainer.resumed)
        if self.options.eval_every_steps:
            folder.check_own_evaluation(data_set)

    def evaluate(self) -> dict[str, float]:
        """Evaluates, writes eval_results.txt and returns its numbers.

        Raises:
            ValueError: the loss is not finite.
        """
        if not (self.trainer.step or self.options.init_checkpoint):
            logger.warning(
                "%s contains no checkpoint and --init_checkpoint is not given: these "
                "are the scores of random weights.",
                self.options.output_dir,
            )
        if self.trainer.resumed:
            self.trainer.folder.check_same_model(self.config)
        means = self._evaluate()
        if not math.isfinite(means["loss"]):
            raise ValueError(
                f"The loss of the evaluation is {means['loss']}, so no results are "
                "written; use --dtype=float32 or an earlier checkpoint."
            )
        results = scores.release_scores(means, self.trainer.step)
        self.trainer.folder.create()
        self.trainer.folder.write_eval_results(results, self._evaluation_data)
        self._write_baselines()
        return results

    def _write_baselines(self):
        """Writes the scores that need no context, for the plots."""
        baselines.write(
            self.trainer.folder,
            self.records,
            self.eval_records,
            vocab_size=self.config.vocab_size,
            data_set=self._evaluation_data,
        )

    def dry_run_report(self, first_step: int = 0) -> str:
        """Returns the size, cost, duration and learning rates of the run as text.

        Args:
            first_step: finished steps with which the run will begin, if earlier phases
                have not been trained yet.
        """
        first_step = max(self.trainer.step, first_step)
        estimate = estimates.estimate(
            self.trainer,
            sequence_length=self.options.max_seq_length,
            num_steps=max(self.trainer.num_train_steps - first_step, 0),
            **objectives.estimate_arguments(self.config, self.options),
        )
        text = str(estimate)
        if self.trainer.time_limit is not None:
            return text
        rates = continuation.describe_rates(self.options, first_step)
        return f"{text}\nlearning rate     {rates}"

    def _open(self, patterns, source):
        return pretraining_examples.open_examples(
            patterns,
            self.options,
            config=self.config,
            vocabulary=self.vocabulary,
            source=source,
            progress=self._progress,
        )

    def _check_same_vocabulary(self):
        """Refuses examples whose vocabulary differs from the resumed run's."""
        fingerprint = self.records.metadata.get("vocab_fingerprint")
        if self.vocabulary is not None:
            fingerprint = self.vocabulary.fingerprint
        self.trainer.folder.check_same_vocabulary(fingerprint)

    def _source(self, records):
        return dynamic_masking.create_source(records, self.vocabulary, self.options)

    @functools.cached_property
    def _training_data(self):
        return pretraining_examples.data_set(
            self.options.input_file,
            self.records,
            window=self.options.shuffle_buffer_size,
        )

    @functools.cached_property
    def _evaluation_data(self):
        if not self.options.eval_input_file:
            return dataclasses.replace(self._training_data, order=None, remote_files=())
        patterns = self.options.eval_input_file
        return pretraining_examples.data_set(patterns, self.eval_records)

    def _training_source(self):
        if not pretraining_examples.is_text(self.records):
            return self._source(self.records)
        return self.records.training_source(
            self.options.output_dir,
            self._training_data.checksum,
            is_written=self.trainer.workers.is_chief,
        )

    def _score_names(self):
        return scores.names_of(objectives.loss_names(self.config, self.records))

    def _evaluation_scores(self):
        return scores.evaluation_scores(self._evaluate())

    def _evaluate(self):
        limit = self.options.max_eval_steps * self.options.eval_batch_size or None
        if pretraining_examples.is_text(self.eval_records):
            # Counting all examples would mean reading all of the text.
            total = ""
            source = self.eval_records.evaluation_source(limit and limit + 1)
        else:
            total = f"of {self.eval_records.num_records} "
            source = self._source(self.eval_records)
        if limit and limit < source.num_examples:
            logger.warning(
                "Evaluating the first %d %sexamples; --max_eval_steps=0 evaluates all.",
                limit,
                total,
            )
        return self.trainer.evaluate(source, max_examples=limit)

    def _task(self):
        return {
            "task": "pretraining",
            "objective": objectives.objective_of(self.config),
            "next_sentence": "next_sentence_labels" in self.records.schema,
            "do_lower_case": self.records.metadata.get("do_lower_case"),
            "max_seq_length": self.options.max_seq_length,
            "max_predictions_per_seq": self.options.max_predictions_per_seq,
        }
