"""The training loop of every task."""

import contextlib
import functools
import logging
import math
import time

import keras
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.checkpoints import loading
from bert_tf.training import building
from bert_tf.training import checkpoint_writing
from bert_tf.training import distribution
from bert_tf.training import evaluation as training_evaluation
from bert_tf.training import hardware
from bert_tf.training import interrupts
from bert_tf.training import non_finite
from bert_tf.training import optimizers
from bert_tf.training import pace
from bert_tf.training import provenance
from bert_tf.training import run_folder
from bert_tf.training import selection
from bert_tf.training import state
from bert_tf.training import steps
from bert_tf.training import time_budget
from bert_tf.training import training_facts
from bert_tf.training import workers

logger = logging.getLogger(__name__)


class Trainer:
    """A model on its devices, with the state of its run.

    Creating one loads the last checkpoint of `options.output_dir` (weights, slots and
    step), or else the weights of `options.init_checkpoint`, or else random ones that
    `options.random_seed` fixes.

    Args:
        create_model: function without arguments that returns a `heads.TaskModel`.
        options: `TrainingOptions`.
        num_train_steps: int; 0 when nothing is to be trained.
        num_warmup_steps: int.
        progress: see `bert_tf.progress`.

    Attributes:
        model: the built `heads.TaskModel`.
        step: int, finished optimizer steps.
        resumed: bool, whether a checkpoint of `output_dir` was continued.
        folder: `run_folder.RunFolder` of `output_dir`.

    Raises:
        ValueError: device, batch size or checkpoint do not fit.
    """

    def __init__(
        self,
        create_model,
        options,
        *,
        num_train_steps=0,
        num_warmup_steps=0,
        progress=progress_module.silent,
    ):
        self.options = options
        self.num_train_steps = num_train_steps
        self.progress = progress
        self.strategy = distribution.of_options(options)
        self.workers = workers.Workers(self.strategy)
        self.folder = run_folder.RunFolder(
            options.output_dir, is_written=self.workers.is_chief
        )
        self.optimizer = None
        keras.utils.set_random_seed(options.random_seed)
        with self.strategy.scope():
            self.model = building.build_model(create_model, options)
            if num_train_steps:
                self._create_optimizer(num_warmup_steps)
        if options.do_eval or options.eval_every_steps:
            distribution.check_batch_size(
                "eval_batch_size", options.eval_batch_size, self.strategy
            )
        self._evaluation = training_evaluation.Evaluation(
            self.model, self.strategy, options, progress=progress
        )
        self.resumed = False
        self._pace = pace.Pace(options.train_batch_size)
        self.step = self._load()

    def _create_optimizer(self, num_warmup_steps):
        distribution.check_batch_size(
            "train_batch_size",
            self.options.train_batch_size,
            self.strategy,
            micro_batches=self.options.gradient_accumulation_steps,
        )
        schedule = optimizers.schedule_of_time(self.options)
        self._budget = time_budget.TimeBudget(
            self.options.max_train_minutes, schedule, agree=self.workers.of_chief
        )
        self.optimizer = optimizers.create_optimizer(
            self.model,
            self.options,
            num_train_steps=self.num_train_steps,
            num_warmup_steps=num_warmup_steps,
            schedule=schedule,
        )

    def _load(self):
        step = state.restore(self.options.output_dir, self.model, self.optimizer)
        self.workers.check_same("the step of the last checkpoint", step or 0)
        if step is not None:
            self.resumed = True
            return step
        if self.options.init_checkpoint:
            loading.load_checkpoint(
                self.model, self.options.init_checkpoint, progress=self.progress
            )
        return 0

    def train(self, source, *, evaluate=None):
        """Trains up to `num_train_steps`, saving, logging and evaluating on the way.

        With `options.max_train_minutes` it ends when they are over.

        Args:
            source: `batching.ArraySource` or `TFRecordSource`.
            evaluate: function without arguments that returns {"eval_...": float};
                called every `eval_every_steps`.

        Returns:
            dict: `loss` of the last step that was taken and `global_step`.
        """
        last_loss = self.folder.last_loss()
        self._budget.start(state.read_train_seconds(self.options.output_dir))
        if self._is_done():
            logger.info("Step %d: nothing left to train.", self.step)
            return {"loss": last_loss, "global_step": self.step}
        self.folder.create()
        self.folder.cut_metrics(self.step)
        # A meeting too: now every worker reads the metrics that are left.
        self.workers.check_shared(self.options.output_dir)
        self._selection = selection.Selection.replayed(
            self.options.best_metric,
            self.options.early_stopping_evals,
            self.folder.read_metrics(),
        )
        train_steps = steps.build_train_steps(
            self.model,
            self.optimizer,
            self.strategy,
            random_seed=self.options.random_seed,
            options=self.options,
        )
        iterator = self._training_iterator(source)
        with (
            contextlib.closing(self.folder),
            interrupts.Interrupts() as interrupted,
            self.workers.clear_errors(),
            self._create_writer() as self._writer,
        ):
            done = False
            while not (done or self._selection.should_stop):
                last_loss = self._advance(train_steps, iterator)
                done = self._is_done()
                self._keep(evaluate, done=done)
                self._writer.check()
                if self.workers.any(interrupted.pending):
                    self._save()
                    self._writer.finish()
                    interrupted.act()
        return {"loss": last_loss, "global_step": self.step}

    def _create_writer(self):
        return checkpoint_writing.CheckpointWriter(
            self.model, self.optimizer, self.options, self.workers
        )

    def _is_done(self):
        return self.step >= self.num_train_steps or self._budget.is_spent

    def _training_iterator(self, source):
        if self.options.group_by_length:
            logger.info("Batches are of like lengths (--group_by_length).")
        self._clear_errors = source.clear_errors
        self._batches_from = functools.partial(
            source.training_batches,
            batch_size=self.options.train_batch_size,
            num_steps=self.num_train_steps,
            seed=self.options.random_seed,
            shuffle_buffer_size=self.options.shuffle_buffer_size,
            length_buckets=self.options.length_buckets,
            group_by_length=self.options.group_by_length,
        )
        return distribution.distribute_shares(
            lambda share: self._batches_from(start_step=self.step, share=share),
            self.options.train_batch_size,
            self.strategy,
        )

    def _advance(self, train_steps, iterator):
        """Takes some steps in one call, logs them, returns the last one's loss."""
        num_steps = min(
            self._pace.num_steps,
            self.options.iterations_per_loop,
            *(period - self.step % period for period in self._periods()),
            self.num_train_steps - self.step,
        )
        self._budget.set_rate()
        started = time.monotonic()
        with self._clear_errors():
            history = train_steps(iterator, tf.constant(num_steps))
        history = {name: values.numpy() for name, values in history.items()}
        seconds = self.workers.of_chief(time.monotonic() - started)
        examples_per_second = self._pace.took(num_steps, seconds)
        num_finite = non_finite.num_finite(history, self.options.dtype)
        self._log(history, num_finite, examples_per_second)
        self.step += num_finite
        if num_finite < num_steps:
            raise self._non_finite_error(history, num_finite)
        done, total, unit = self._budget.amount(self.step, self.num_train_steps)
        self.progress(
            "train",
            done,
            total,
            unit=unit,
            values={
                "loss": float(history["loss"][-1]),
                "examples_per_second": examples_per_second,
            },
        )
        return float(history["loss"][-1])

    def _non_finite_error(self, history, index):
        values = {name: float(all_[index]) for name, all_ in history.items()}
        batch = next(iter(self._batches_from(start_step=self.step)))
        folder = self.options.output_dir
        return non_finite.error(folder, self.step + 1, values, batch)

    def _periods(self):
        periods = [self.options.save_checkpoints_steps]
        if self.options.eval_every_steps:
            periods.append(self.options.eval_every_steps)
        return periods

    def _log(self, history, num_steps, examples_per_second):
        """Logs of the steps just taken 1, the last, and every `log_every_steps`th."""
        for index in range(num_steps):
            step = self.step + index + 1
            is_due = step % self.options.log_every_steps == 0
            if is_due or step in (1, self.num_train_steps):
                values = {name: float(all_[index]) for name, all_ in history.items()}
                values["examples_per_second"] = examples_per_second
                self.folder.log(step, values)

    def _keep(self, evaluate, *, done):
        """Evaluates and saves where it is due."""
        every = self.options.eval_every_steps
        if evaluate and every and (self.step % every == 0 or done):
            self._evaluate_and_select(evaluate)
        period = self.options.save_checkpoints_steps
        if self.step % period == 0 or done or self._selection.should_stop:
            self._save()

    def _evaluate_and_select(self, evaluate):
        scores = evaluate()
        self.folder.log(self.step, scores, tag="eval")
        if self._selection.is_best(scores):
            self.folder.copy_settings_to(self._writer.save_best(self.step))

    def _save(self):
        self._writer.save(self.step, train_seconds=self._budget.used_seconds)

    def facts(self):
        """Returns what the training was like, for `model_card.Card.training`.

        Its speed is that of the median step of this process.
        """
        return training_facts.TrainingFacts(
            num_parameters=self.model.count_params(),
            num_trained_parameters=sum(
                math.prod(variable.shape) for variable in self.model.trainable_variables
            ),
            num_steps=self.step,
            examples_per_second=self._pace.median_speed,
            devices=hardware.description(self.strategy),
            versions=provenance.versions(),
            date=training_facts.today(),
        )

    def evaluate(self, source, *, max_examples=None):
        """Returns means over examples; see `evaluation.Evaluation.evaluate`."""
        return self._evaluation.evaluate(source, max_examples=max_examples)

    def predict(self, source, keys=("probabilities",)):
        """Returns outputs, row by row; see `evaluation.Evaluation.predict`."""
        return self._evaluation.predict(source, keys)
