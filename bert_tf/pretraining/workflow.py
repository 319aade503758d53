"""run_pretraining on one page: check the inputs, train, evaluate, report."""

import dataclasses
import functools
import logging
import math
from collections.abc import Mapping
from typing import Any

from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.fine_tuning import run_report
from bert_tf.pretraining import examples as pretraining_examples
from bert_tf.pretraining import model_setup
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import scores
from bert_tf.training import distribution
from bert_tf.training import loop
from bert_tf.training import run_file
from bert_tf.training import run_folder
from bert_tf.training import steps
from bert_tf.training import stopping

logger = logging.getLogger(__name__)


def run(
    options: pretraining_options.RunPretrainingOptions,
) -> str:
    """Trains and evaluates as the options say; returns a report for the user.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: options, examples and checkpoint contradict each other.
    """
    if not (options.do_train or options.do_eval or options.dry_run):
        raise options_module.OptionError(
            "Nothing to do: pass --do_train, --do_eval or --dry_run."
        )
    with run_folder.locked(options):
        pretraining = Pretraining(options)
        if options.dry_run:
            return pretraining.dry_run_report()
        lines = []
        if options.do_train:
            reached = pretraining.train()
            lines.append(
                f"Trained to step {reached['global_step']}, loss {reached['loss']:.4f}."
            )
        if options.do_eval:
            results = pretraining.evaluate()
            lines += run_folder.score_lines(results)
            warning = pretraining.compare_with_start(results)
            if options.do_train and warning is not None:
                lines.append(warning)
        run_report.write_report(pretraining.trainer.folder)
    return "\n".join([*lines, f"The run is in {options.output_dir}."])


def train(
    options: pretraining_options.RunPretrainingOptions,
) -> dict[str, Any]:
    """Trains; returns {"loss", "global_step"}. See `run`."""
    options = dataclasses.replace(options, do_train=True, dry_run=False)
    with run_folder.locked(options):
        return Pretraining(options).train()


def evaluate(
    options: pretraining_options.RunPretrainingOptions,
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns the release's six scores. See `run`."""
    options = dataclasses.replace(options, do_train=False, do_eval=True, dry_run=False)
    return Pretraining(options).evaluate()


class Pretraining:
    """Examples and model of one run of pretraining, checked against each other.

    The cost of attention grows with the square of the length. So the paper trains 90 %
    of the steps on sequences of 128 pieces and only the last 10 % on sequences of 512,
    which teach the remaining position embeddings (appendix A.2 of arXiv:1810.04805).
    A run therefore may have phases with examples of different lengths. Batches and
    dropout masks are functions of the step, so two phases of the same length compute
    the same as one. Every evaluation reads examples of the last phase's length, so that
    the scores of a run can be compared.
    """

    def __init__(
        self,
        options: pretraining_options.RunPretrainingOptions,
    ):
        self.options = options
        self._trains = options.do_train or options.dry_run
        self._has_warned = False  # That the model unlearns.
        self._phases = options.each_phase()
        start = model_setup.find_start(options)
        config = model_setup.override(
            start.config,
            options.config_overrides,
            has_weights=start.source is not None,
        )
        self.config = model_setup.with_attention(config, options.objective)
        self.config.check_sequence_length(options.max_seq_length)
        self.vocabulary = start.vocabulary
        self._hub_name = None if start.source is None else start.source.hub_name
        self._has_start = start.source is not None
        self._open_examples(start.source)
        if options.do_train and options.eval_every_steps:
            names = scores.names_of(self.config, self.records.schema)
            if options.best_metric not in names:
                raise ValueError(
                    f"--best_metric={options.best_metric} is not among the scores of "
                    f"this run: {', '.join(sorted(names))}."
                )
        self.trainer = self._create_trainer(start.source)
        if self.trainer.resumed:
            self._check_same_text()
        if options.do_eval or (options.do_train and options.eval_every_steps):
            run_file.warn_if_trained_on(
                options.output_dir,
                self._evaluation_data,
                self._training_data if self._trains else None,
            )
        if options.do_eval:
            distribution.check_batch_size(
                "eval_batch_size", options.eval_batch_size, self.trainer.strategy
            )

    def _open_examples(self, source):
        """Opens the examples of each phase, and those to evaluate on."""
        self._phase_records = [
            self._open(self.options.input_file, phase, source) for phase in self._phases
        ]
        self.records = self.eval_records = self._phase_records[-1]
        if self.vocabulary is None:
            self.vocabulary = pretraining_examples.recorded_vocabulary(
                self.records, source
            )
        if self.options.eval_input_file:
            self.eval_records = self._open(
                self.options.eval_input_file, self._phases[-1], source
            )
        for records in (*self._phase_records, self.eval_records):
            pretraining_examples.check_alike(self.records, records)
        if self.config.is_causal and "next_sentence_labels" in self.records.schema:
            # Every other B is random, which no task of such a model would use.
            raise ValueError(
                f"{self.records.paths[0]} contains sentence pairs, but "
                "--objective=left_to_right needs continuous text. Create the examples "
                "with --next_sentence=false."
            )
        pretraining_examples.check_options(
            self.options, self.records, self.eval_records
        )

    def _open(self, patterns, phase, source):
        return pretraining_examples.open_examples(
            patterns,
            phase,
            config=self.config,
            vocabulary=self.vocabulary,
            source=source,
            is_phase=bool(self.options.phases),
        )

    def _create_trainer(self, source):
        options = self.options
        num_train_steps, time_limit = options.num_train_steps, None
        if options.max_train_minutes is not None:
            num_train_steps = stopping.NO_STEP_LIMIT
            time_limit = stopping.TimeLimit(
                minutes=options.max_train_minutes,
                warmup_proportion=options.warmup_proportion,
            )
        return loop.Trainer(
            lambda: model_setup.create_model(
                self.config, self.records.schema, options.dtype, source
            ),
            options,
            num_train_steps=num_train_steps if self._trains else 0,
            num_warmup_steps=options.num_warmup_steps,
            time_limit=time_limit,
            best_metrics=(options.best_metric,),
            patience=options.early_stopping_evals,
            source=source,
        )

    def _check_same_text(self):
        """Refuses a vocabulary or casing other than that of the resumed run."""
        folder = self.trainer.folder
        fingerprint = self.records.metadata.get("vocab_fingerprint")
        if self.vocabulary is not None:
            fingerprint = self.vocabulary.fingerprint
        folder.check_same_vocabulary(fingerprint)
        recorded = companion_files.read_task(folder.path).get("do_lower_case")
        now = self._task()["do_lower_case"]
        if None not in (recorded, now) and recorded != now:
            raise ValueError(
                f"{folder.path} contains a run with do_lower_case={recorded}, but "
                f"{self.records.paths[0]} has {now} now; use the same casing, "
                "or another --output_dir."
            )

    def train(self) -> dict[str, Any]:
        """Trains to num_train_steps; returns {"loss", "global_step"}."""
        trainer = self.trainer
        results = {}
        if self.options.do_eval or self.options.eval_every_steps:
            results = {run_folder.EVAL_RESULTS_FILE: self._evaluation_data}
        settings = run_folder.Settings(
            task=self._task(),
            config=self.config,
            vocabulary=self.vocabulary,
            options=self.options,
            training_data=self._training_data,
            results=results,
            hub_name=self._hub_name,
        )
        if not trainer.may_train(settings):
            return trainer.nothing_left()
        trainer.folder.write_settings(settings, step=trainer.step)
        if self.options.eval_every_steps:
            self._write_baselines()
        if results and self._has_start and not trainer.resumed:
            self._evaluate_start()
        for phase, records in zip(self._phases, self._phase_records, strict=True):
            is_over = self.options.phases and trainer.step >= phase.num_train_steps
            if not is_over:
                reached = trainer.train(
                    self._training_source(phase, records),
                    evaluate=self._evaluate_while_training,
                    last_step=phase.num_train_steps if self.options.phases else None,
                )
        return reached

    def _evaluate_start(self):
        """Logs the scores of the checkpoint as those of step 0."""
        start = scores.evaluation_scores(self._evaluate())
        self.trainer.folder.cut_metrics(-1)  # A killed run may have logged them.
        self.trainer.folder.log(0, start, tag="eval")
        line = ", ".join(f"{n.removeprefix('eval_')} {v:.4f}" for n, v in start.items())
        logger.info("Evaluation before the first step: %s", line)

    def _evaluate_while_training(self):
        means = self._evaluate()
        is_warmed_up = self.trainer.budget.is_warmed_up(
            self.trainer.step, self.options.num_warmup_steps
        )
        if is_warmed_up and not self._has_warned:
            warning = self.compare_with_start(means)
            self._has_warned = warning is not None
            if warning is not None:
                logger.warning("%s", warning)
        return scores.evaluation_scores(means)

    def compare_with_start(self, means: Mapping[str, float]) -> str | None:
        """Returns a sentence if the held-out loss is higher than before the first step.

        Returns None if it is lower, or if that of the start is unknown, also because a
        resumed run evaluates on other data.
        """
        folder = self.trainer.folder
        if folder.suffix_of(run_folder.EVAL_RESULTS_FILE, self._evaluation_data):
            return None
        name = scores.words_loss(means)
        logged = folder.read_metrics()
        starts = [line[f"eval_{name}"] for line in logged if line["step"] == 0]
        before = min(starts, default=math.inf)
        if not means[name] > before:
            return None
        remedy = f"a --learning_rate below {self.options.learning_rate:.2g}"
        if not self.options.bias_correction and self.options.optimizer == "adamw":
            remedy += " or --bias_correction"
        return (
            f"The held-out {name} is {means[name]:.4f}, but {before:.4f} before the "
            f"first step: the model has unlearned. Use {remedy}."
        )

    def _training_source(self, phase, records):
        if not pretraining_examples.is_text(records):
            return pretraining_examples.record_source(records)
        return records.training_source(
            self.options.output_dir,
            self._training_data.checksum,
            is_written=self.trainer.workers.is_chief and not self.options.dry_run,
        )

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

    def _evaluate(self):
        limit = self.options.max_eval_steps * self.options.eval_batch_size or None
        if pretraining_examples.is_text(self.eval_records):
            # Counting all examples would mean reading all of the text.
            total = ""
            source = self.eval_records.evaluation_source(limit and limit + 1)
        else:
            total = f"of {self.eval_records.num_records} "
            source = pretraining_examples.record_source(self.eval_records)
        if limit and limit < source.num_examples:
            logger.warning(
                "Evaluating the first %d %sexamples; --max_eval_steps=0 evaluates all.",
                limit,
                total,
            )
        return self.trainer.evaluate(source, max_examples=limit)

    def _write_baselines(self):
        """Writes the scores that need no context, for the plots."""
        scores.write_baselines(
            self.trainer.folder,
            self.records,
            self.eval_records,
            vocab_size=self.config.vocab_size,
            data_set=self._evaluation_data,
        )

    def dry_run_report(self) -> str:
        """Returns the size, cost and duration of each phase as text."""
        parts, first_step = [], self.trainer.step
        for phase, records in zip(self._phases, self._phase_records, strict=True):
            last_step = phase.num_train_steps
            if self.trainer.budget.seconds is not None:
                last_step = self.trainer.num_train_steps
            source = self._training_source(phase, records)
            num_steps = max(last_step - first_step, 0)
            parts.append(steps.measure(self.trainer, source, num_steps=num_steps))
            first_step = max(first_step, last_step)
        return "\n".join(parts)

    @functools.cached_property
    def _training_data(self):
        return pretraining_examples.data_set(
            self.options.input_file,
            self._phase_records,
            window=self.options.shuffle_buffer_size,
        )

    @functools.cached_property
    def _evaluation_data(self):
        if not self.options.eval_input_file:
            return dataclasses.replace(self._training_data, order=None)
        patterns = self.options.eval_input_file
        return pretraining_examples.data_set(patterns, [self.eval_records])

    def _task(self):
        return {
            "task": "pretraining",
            "objective": "left_to_right" if self.config.is_causal else "masked_lm",
            "next_sentence": "next_sentence_labels" in self.records.schema,
            "do_lower_case": self.records.metadata.get("do_lower_case"),
            "max_seq_length": self.options.max_seq_length,
            "max_predictions_per_seq": self.options.max_predictions_per_seq,
        }
