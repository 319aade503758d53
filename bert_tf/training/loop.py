"""The training loop of every task.

`Trainer` puts a run together: devices (`distribution`), model, optimizer and the state
to start from (`saving`). `Trainer.train` then repeats:

1. Decide how many steps the next call takes: as many as fit into about a second, but
   never past a checkpoint or an evaluation that is due.
2. Take these steps in one call. What happens in a step is in `steps`.
3. Log them, and stop if a loss or gradient is not finite.
4. Evaluate and save when due, and stop if the score no longer improves.
5. If Ctrl-C or SIGTERM arrived in the meantime, save and stop.

Batches, learning rates and dropout are functions of the seed and the step alone, and a
checkpoint contains everything else. A run that is killed and started again therefore
ends with the same weights as an uninterrupted one.
"""

import contextlib
import datetime
import logging
import math
import statistics
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import source as source_module
from bert_tf.optimization import adam_weight_decay
from bert_tf.optimization import schedules
from bert_tf.training import distribution
from bert_tf.training import evaluation as training_evaluation
from bert_tf.training import options as training_options
from bert_tf.training import run_file
from bert_tf.training import run_folder
from bert_tf.training import saving
from bert_tf.training import steps
from bert_tf.training import stopping
from bert_tf.training import workers

logger = logging.getLogger(__name__)

# Target duration of a call from the host: short enough for the progress bar to move
# and for Ctrl-C to be noticed, long enough for the host's overhead not to matter.
SECONDS_PER_CALL = 1.0
Evaluate = Callable[[], dict[str, float]]


class Pace:
    """Measures calls of several steps each, and sets the length of the next one."""

    def __init__(self, batch_size: int):
        self._batch_size = batch_size
        self._speeds: list[float] = []
        self.num_steps = 1  # That the next call may take.

    def record_call(self, num_steps: int, seconds: float) -> float:
        """Records a call and returns its examples per second."""
        # A checkpoint that is due can cut a call short, so a full one is estimated.
        seconds_of_full_call = self.num_steps * seconds / num_steps
        if seconds_of_full_call < SECONDS_PER_CALL / 2:
            self.num_steps *= 2
        elif seconds_of_full_call > 2 * SECONDS_PER_CALL:
            self.num_steps = max(1, self.num_steps // 2)
        speed = num_steps * self._batch_size / seconds
        self._speeds += [speed] * num_steps
        return speed

    @property
    def median_speed(self) -> float | None:
        """Examples per second of the median step; None before the first call."""
        return statistics.median(self._speeds) if self._speeds else None


class Trainer:
    """A model on its devices, together with the state of its run.

    The constructor loads the latest checkpoint in `options.output_dir` (weights, slots
    and step). If there is none, it loads the weights of `source` or
    `options.init_checkpoint`. If neither is given, the weights are random, fixed by
    `options.random_seed`.

    Args:
        create_model: returns the model, not built. Called in the strategy's scope.
        options: of all parts of training.
        num_train_steps: the step at which the run ends; 0: the model is not trained.
        num_warmup_steps: steps over which the learning rate rises.
        time_limit: ends the run after some time; the learning rate then follows the
            time instead of the step.
        best_metrics: the first of these scores that the evaluations have selects the
            checkpoint in best/.
        patience: evaluations without a better score until training stops; 0: never.
        source: opened checkpoint to start from, instead of `options.init_checkpoint`.

    Attributes:
        model: the built model.
        optimizer: the built optimizer; None if the model is not trained.
        strategy: the devices.
        step: int, finished optimizer steps.
        resumed: bool, whether a checkpoint of `output_dir` was loaded.
        folder: `run_folder.RunFolder` of `output_dir`.
        budget: `stopping.TimeBudget`, the time of the run.
        evaluate, predict: those of its `evaluation.Evaluation`.

    Raises:
        ValueError: the device does not exist, a batch cannot be divided among the
            replicas, or the checkpoint belongs to another model.
        OSError: the checkpoint cannot be read.

    Example:
        trainer = loop.Trainer(
            lambda: bert_tf.BertClassifier(config, num_labels=2),
            training_options.TrainerOptions(output_dir="run", learning_rate=3e-5),
            num_train_steps=1000,
            num_warmup_steps=100,
        )
        trainer.train(batching.ArraySource(columns))
    """

    def __init__(
        self,
        create_model: Callable[[], Any],
        options: training_options.TrainerOptions,
        *,
        num_train_steps: int = 0,
        num_warmup_steps: int = 0,
        time_limit: stopping.TimeLimit | None = None,
        best_metrics: Sequence[str] = ("eval_loss",),
        patience: int = 0,
        source: source_module.Source | None = None,
    ):
        self.options = options
        self.num_train_steps = num_train_steps
        self._last_step = num_train_steps
        self._best_metrics, self._patience = best_metrics, patience
        self.strategy = distribution.create_strategy(options)
        self.workers = workers.Workers(self.strategy)
        if self.workers.count > 1:
            flags = run_file.flags_of(options)
            self.workers.check_same("the names of the flags", list(flags))
            for name, value in flags.items():
                self.workers.check_same(f"--{name}", value)
        self.folder = run_folder.RunFolder(
            options.output_dir, is_written=self.workers.is_chief
        )
        self.optimizer: Any = None
        self._pace = Pace(options.train_batch_size)
        keras.utils.set_random_seed(options.random_seed)
        with self.strategy.scope():
            self.model = create_model()
            self.model.build()
            self.model.bert.encoder.recomputes_layers = options.recompute_layers
            self.budget = stopping.TimeBudget(
                time_limit, options.learning_rate, self.workers.broadcast_from_chief
            )
            if num_train_steps:
                self._create_optimizer(num_warmup_steps)
        if options.eval_every_steps:
            distribution.check_batch_size(
                "eval_batch_size", options.eval_batch_size, self.strategy
            )
        evaluation = training_evaluation.Evaluation(
            self.model, self.strategy, options, length_buckets=options.length_buckets
        )
        self.evaluate, self.predict = evaluation.evaluate, evaluation.predict
        self.resumed = False
        self.step = self._load(source)
        # The first step of a run is logged. A resumed run has logged it before.
        self._logged_steps = (num_train_steps, 1 if self.resumed else self.step + 1)

    def _create_optimizer(self, num_warmup_steps: int) -> None:
        options = self.options
        distribution.check_batch_size(
            "train_batch_size",
            options.train_batch_size,
            self.strategy,
            micro_batches=options.gradient_accumulation_steps,
        )
        advice = schedules.advice_on_rate(
            options.learning_rate,
            0 if self.budget.schedule else self.num_train_steps,
            num_warmup_steps,
            is_corrected=options.bias_correction or options.optimizer == "lamb",
        )
        if advice is not None:
            logger.warning("%s", advice)
        self.optimizer = adam_weight_decay.create_optimizer(
            options.learning_rate,
            self.num_train_steps,
            num_warmup_steps,
            schedule=self.budget.schedule,
            name=options.optimizer,
            bias_correction=options.bias_correction,
        )
        self.optimizer.build(self.model.trainable_variables)
        if options.dtype == training_options.MIXED_FLOAT16:
            self.optimizer.loss_scale = steps.LossScale()

    def _load(self, source: source_module.Source | None) -> int:
        step = saving.restore(self.options.output_dir, self.model, self.optimizer)
        self.workers.check_same("the step of the latest checkpoint", step or 0)
        if step is not None:
            self.resumed = True
            return step
        if source is not None:
            loading.load_source(self.model, source)
        elif self.options.init_checkpoint:
            loading.load_checkpoint(self.model, self.options.init_checkpoint)
        return 0

    def train(
        self,
        examples: Any,
        *,
        evaluate: Evaluate | None = None,
        last_step: int | None = None,
    ) -> dict[str, float]:
        """Trains to the last step, or until the time limit or an early stop.

        Args:
            examples: what to train on.
            evaluate: returns {"eval_...": score}; called every `eval_every_steps`;
                required if that is set.
            last_step: the step to stop at, if other examples follow; None: the last.

        Returns:
            `loss` of the last step that was taken, and `global_step`.

        Raises:
            ValueError: a loss or gradient is not finite, or `evaluate` is missing.
            OSError: the run's files cannot be written, or a worker was lost.
            KeyboardInterrupt: Ctrl-C or SIGTERM; the state is saved.
        """
        if self.options.eval_every_steps and evaluate is None:
            raise ValueError(
                f"eval_every_steps is {self.options.eval_every_steps}, but `evaluate` "
                "is None; pass a function that returns scores, or set it to 0."
            )
        self._last_step = last_step or self.num_train_steps
        if not self.has_steps_left():
            return self.nothing_left()
        self._remove_leftovers()
        last_loss = self.folder.last_loss()
        self.folder.create()
        self.folder.cut_metrics(self.step)
        self.workers.gather(0.0)  # A barrier: then all read the metrics that remain.
        self._selection = self._replayed_selection()
        train_steps, iterator = self.prepare_steps(examples)
        with (
            contextlib.closing(self.folder),
            stopping.Interrupts() as interrupted,
            self.workers.clear_errors(),
            saving.CheckpointWriter(
                self.model, self.optimizer, self.options, self.workers
            ) as self._writer,
        ):
            done = False
            while not (done or self._selection.should_stop):
                last_loss = self._advance(train_steps, iterator)
                done = self._is_done()
                self._evaluate_and_save(evaluate, done=done)
                self._writer.check()
                if self.workers.any_worker(interrupted.pending):
                    self._save()
                    self._writer.finish()
                    interrupted.interrupt(
                        f"step {self.step} is saved in {self.options.output_dir}"
                    )
        return {"loss": last_loss, "global_step": self.step}

    def may_train(self, settings: run_folder.Settings) -> bool:
        """Returns whether `train` would take a step, and checks a resumed run.

        Raises:
            ValueError: the workers train on different data; or see
                `run_folder.RunFolder.check_same_run`.
        """
        if settings.training_data is not None:
            checksum = settings.training_data.checksum
            self.workers.check_same("the training data", checksum)
        if not self.resumed:
            return True
        is_left = self.has_steps_left()
        self.folder.check_same_run(settings, step=self.step, has_steps_left=is_left)
        return is_left

    def has_steps_left(self) -> bool:
        """Returns whether `train` would take a step; starts the clock of the run."""
        self.budget.start(saving.read_train_seconds(self.options.output_dir))
        return not (self._is_done() or self._replayed_selection().should_stop)

    def _replayed_selection(self) -> stopping.Selection:
        selection = stopping.Selection(self._best_metrics, self._patience)
        logged = self.folder.read_metrics()
        selection.replay(line for line in logged if 0 < line["step"] <= self.step)
        return selection

    def nothing_left(self) -> dict[str, float]:
        """Returns what `train` returns for a run without steps left, and logs it."""
        self._remove_leftovers()
        logger.info("Step %d: nothing left to train.", self.step)
        return {"loss": self.folder.last_loss(), "global_step": self.step}

    def _remove_leftovers(self) -> None:
        if self.workers.is_chief:
            saving.remove_leftovers(self.options.output_dir)

    def _is_done(self) -> bool:
        return self.step >= self._last_step or self.budget.is_spent

    def prepare_steps(self, examples: Any) -> tuple[Callable, Any]:
        """Returns the function that takes steps, and the batches that it reads."""
        train_steps = steps.build_train_steps(
            self.model,
            self.optimizer,
            self.strategy,
            random_seed=self.options.random_seed,
            micro_batches=self.options.gradient_accumulation_steps,
            jit_compile=distribution.compiles_step(self.options, self.strategy),
        )
        self._clear_errors = examples.clear_errors
        return train_steps, distribution.distribute_shares(
            lambda share: examples.training_batches(
                batch_size=self.options.train_batch_size,
                num_steps=self._last_step,
                start_step=self.step,
                seed=self.options.random_seed,
                shuffle_buffer_size=self.options.shuffle_buffer_size,
                length_buckets=self.options.length_buckets,
                share=share,
            ),
            self.options.train_batch_size,
            self.strategy,
        )

    def _advance(self, train_steps: Callable, iterator: Any) -> float:
        """Takes some steps in one call, logs them, returns the last one's loss."""
        num_steps = self._num_steps_of_next_call()
        self.budget.set_rate()
        started = time.monotonic()
        with self._clear_errors():
            history = train_steps(iterator, tf.constant(num_steps))
        history = {name: values.numpy() for name, values in history.items()}
        # Sets the length of the next call, so all workers need the same number.
        seconds = self.workers.broadcast_from_chief(time.monotonic() - started)
        examples_per_second = self._pace.record_call(num_steps, seconds)
        num_finite = stopping.count_finite_steps(history)
        self._log(history, num_finite, examples_per_second)
        self.step += num_finite
        if num_finite < num_steps:
            values = {
                name: float(column[num_finite]) for name, column in history.items()
            }
            stopping.stop_training(self.options.output_dir, self.step + 1, values)
        loss = float(history["loss"][-1])
        done, total, unit = self.budget.amount_done(self.step, self.num_train_steps)
        values = {"loss": loss, "examples/s": examples_per_second}
        progress_module.report("train", done, total, unit=unit, values=values)
        return loss

    def _num_steps_of_next_call(self) -> int:
        periods = [self.options.save_checkpoints_steps]
        if self.options.eval_every_steps:
            periods.append(self.options.eval_every_steps)
        return min(
            self._pace.num_steps,
            self.options.iterations_per_loop,
            *(period - self.step % period for period in periods),
            self._last_step - self.step,
        )

    def _log(self, history, num_steps, examples_per_second):
        """Logs the first, the last and some steps in between."""
        for index in range(num_steps):
            step = self.step + index + 1
            # With a time limit, the number of steps is unknown.
            total = step if self.budget.schedule else self.num_train_steps
            if step in self._logged_steps or is_logged(step, total):
                values = {n: float(column[index]) for n, column in history.items()}
                values["examples_per_second"] = examples_per_second
                self.folder.log(step, values)

    def _evaluate_and_save(self, evaluate: Evaluate | None, *, done: bool) -> None:
        every = self.options.eval_every_steps
        if evaluate and every and (self.step % every == 0 or done):
            scores = evaluate()
            self.folder.log(self.step, scores, tag="eval")
            is_best = self._selection.is_best(scores)
            line = self._selection.line(scores)
            logger.info("Evaluation at step %d: %s", self.step, line)
            if is_best:
                self.folder.copy_settings_to(self._writer.save_best(self.step))
            if self._selection.should_stop and not done:
                logger.info(
                    "Stopping early: %s has not improved in %d evaluations.",
                    self._selection.metric,
                    self._selection.patience,
                )
        period = self.options.save_checkpoints_steps
        if self.step % period == 0 or done or self._selection.should_stop:
            self._save()

    def _save(self) -> None:
        self.folder.write_metrics()  # A resumed run does not log these steps again.
        self._writer.save(self.step, train_seconds=self.budget.used_seconds)

    def facts(self) -> run_file.TrainingFacts:
        """Returns facts about the training, for a model card."""
        return run_file.TrainingFacts(
            num_parameters=self.model.count_params(),
            num_trained_parameters=sum(
                math.prod(variable.shape) for variable in self.model.trainable_variables
            ),
            num_steps=self.step,
            examples_per_second=self._pace.median_speed,
            devices=run_file.describe_devices(self.strategy),
            versions=run_file.package_versions(),
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        )


def is_logged(step: int, num_steps: int) -> bool:
    """Returns whether a step is among those that a run logs.

    A short run logs 50 steps or more, so that its curves show something, and a long run
    every hundredth step, as the release did.

    Args:
        step: from 1.
        num_steps: of the run.
    """
    return step % min(100, max(1, num_steps // 50)) == 0
