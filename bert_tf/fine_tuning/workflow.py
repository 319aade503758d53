"""The steps that all fine-tuning tasks share: options to trainer to results."""

import dataclasses
import logging
import os
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

from bert_tf import progress as progress_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import run_report
from bert_tf.fine_tuning import run_setup as fine_tuning_run_setup
from bert_tf.training import distribution
from bert_tf.training import evaluation as training_evaluation
from bert_tf.training import loop
from bert_tf.training import protocols
from bert_tf.training import result_files
from bert_tf.training import run_folder
from bert_tf.training import stopping

logger = logging.getLogger(__name__)


def run(task_run: Any, options: fine_tuning_options.TaskOptions) -> str:
    """Trains, evaluates and predicts as requested; returns a report.

    Args:
        task_run: `fine_tuning.run.Run`.
        options: of the run.
    """
    if options.dry_run:
        return task_run.dry_run_report()
    lines = []
    if options.do_train:
        reached = task_run.train()
        step, loss = reached["global_step"], reached["loss"]
        lines.append(f"Trained to step {step}, loss {loss:.4f}.")
    if options.do_eval:
        lines += run_folder.score_lines(task_run.evaluate())
        lines += task_run.lines
        lines += other_data_lines(options.output_dir, task_run.setup.data_sets["dev"])
    if options.do_predict:
        # Scores of the test set may already be among those in eval_results.txt.
        lines += [line for line in task_run.predict() if line not in lines]
    if options.do_train or options.do_eval:
        run_report.write(task_run.trainer.folder)
    return "\n".join([*lines, place_line(options)])


def other_data_lines(run_dir: str, data_set: result_files.DataSet) -> list[str]:
    """Returns a line that says where scores are, if not in eval_results.txt."""
    name = run_folder.EVAL_RESULTS_FILE
    suffix = result_files.suffix_of(run_dir, name, data_set)
    if not suffix:
        return []
    path = os.path.join(run_dir, result_files.with_suffix(name, suffix))
    return [f"These scores are not on the run's own data; they are in {path}."]


def place_line(options: fine_tuning_options.TaskOptions) -> str:
    """Returns the line that ends every report."""
    return f"The run is in {options.output_dir}."


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


def create_trainer(
    setup: fine_tuning_run_setup.RunSetup,
    options: fine_tuning_options.TaskOptions,
    num_steps: int,
    *,
    score_names: Callable[[], Collection[str]],
    create_model: Callable[[], protocols.TaskModel],
    prediction_flag: str,
    progress: progress_module.Progress = progress_module.silent,
) -> loop.Trainer:
    """Returns the trainer of a run, with its model built and its weights loaded.

    Args:
        setup: of the run. Its `source` is loaded if the run has no checkpoint.
        options: of the run.
        num_steps: see `num_train_steps`. 0 for a run that does not train.
        score_names: returns the names of all scores. Called only if the run evaluates
            during training.
        create_model: called in the scope of the strategy.
        prediction_flag: name of the option with the batch size of predictions.
        progress: see `bert_tf.progress`.

    Raises:
        ValueError: a batch cannot be divided among the replicas, or there is no score
            `best_metric`.
    """
    for name in options.sets_to_read:
        # Computed now, because the file may change during the training.
        _ = setup.data_sets[name].checksum
    if options.evaluates and not setup.is_held_out:
        result_files.warn_if_trained_on(
            options.output_dir,
            setup.data_sets["dev"],
            setup.data_sets["train"] if options.trains else None,
        )
    if options.do_train and options.eval_every_steps:
        stopping.check_metric(options.best_metric, score_names())
    trainer = loop.Trainer(
        create_model,
        options,
        num_train_steps=num_steps,
        num_warmup_steps=int(num_steps * options.warmup_proportion),
        frozen_layers=options.frozen_layers,
        source=setup.source,
        progress=progress,
    )
    if options.do_eval:
        distribution.check_batch_size(
            "eval_batch_size", options.eval_batch_size, trainer.strategy
        )
    if options.do_predict:
        distribution.check_batch_size(
            prediction_flag, getattr(options, prediction_flag), trainer.strategy
        )
    return trainer


def train(
    trainer: loop.Trainer,
    setup: fine_tuning_run_setup.RunSetup,
    options: fine_tuning_options.TaskOptions,
    examples: Callable[[], protocols.ExampleSource],
    *,
    counts: Mapping[str, int],
    evaluate: Callable[[], dict[str, float]],
) -> dict[str, float]:
    """Writes the run's settings and trains to the last step.

    Args:
        trainer: of the run.
        setup: of the run.
        options: of the run.
        examples: returns the training examples. Called after all checks.
        counts: numbers to log before training, by name.
        evaluate: evaluates and returns the scores by name.

    Returns:
        {"loss", "global_step"}.

    Raises:
        ValueError: output_dir contains a run with other settings or data.
    """
    checksum = setup.data_sets["train"].checksum
    trainer.workers.check_same("the training data", checksum)
    if trainer.resumed:
        has_steps_left = trainer.has_steps_left()
        trainer.folder.check_same_run(
            setup.config,
            options,
            training_data=setup.data_sets["train"],
            results=setup.own_results(),
            step=trainer.step,
            has_steps_left=has_steps_left,
        )
        if not has_steps_left:
            return trainer.nothing_left()
    trainer.folder.create()
    trainer.folder.write_settings(
        task=setup.task.to_dict(),
        config=setup.config,
        vocabulary=setup.vocabulary,
        options=options,
        training_data=setup.data_sets["train"],
        results=setup.own_results(),
        hub_name=None if setup.source is None else setup.source.hub_name,
        step=trainer.step,
    )
    logger.info("***** Running training *****")
    for name, value in counts.items():
        logger.info("  %s = %d", name, value)
    logger.info("  Batch size = %d", options.train_batch_size)
    logger.info("  Num steps = %d", trainer.num_train_steps)
    return trainer.train(
        examples(), evaluate=evaluate, group_by_length=options.group_by_length
    )


def write_results(
    trainer: loop.Trainer,
    scores: dict[str, float],
    data_set: result_files.DataSet | None,
) -> dict[str, float]:
    """Writes eval_results.txt and returns its contents.

    Scores of the development set begin with `eval_`, those of the test set with
    `test_`. Writing one kind keeps the other if it belongs to the same step.

    Args:
        trainer: of the run.
        scores: by name. `eval_loss` is also written as `loss`, its name in the release.
        data_set: what was evaluated; see `result_files`. None: the run's own data.
    """
    results = scores | {"global_step": trainer.step}
    if "eval_loss" in results:
        results["loss"] = results["eval_loss"]
    suffix = ""
    if data_set is not None:
        suffix = trainer.folder.suffix_of(run_folder.EVAL_RESULTS_FILE, data_set)
    earlier = trainer.folder.read_eval_results(suffix)
    if earlier.get("global_step") == trainer.step:
        prefixes = {name[:5] for name in scores}  # "eval_" or "test_".
        kept = {k: v for k, v in earlier.items() if k[:5] not in prefixes}
        results = kept | results
    trainer.folder.create()
    trainer.folder.write_eval_results(results, data_set)
    return results


def prediction(
    trainer: loop.Trainer,
    options: Any,
    *,
    batch_size: int | None = None,
    progress: progress_module.Progress = progress_module.silent,
) -> training_evaluation.Evaluation:
    """Returns an `Evaluation` that predicts with the model of a run.

    Args:
        trainer: of the run.
        options: of the run.
        batch_size: rows per step over all replicas. Default: `predict_batch_size`.
        progress: see `bert_tf.progress`.
    """
    batch_size = batch_size or options.predict_batch_size
    return training_evaluation.Evaluation(
        trainer.model,
        trainer.strategy,
        dataclasses.replace(options, eval_batch_size=batch_size),
        length_buckets=options.length_buckets,
        stage="predict",
        progress=progress,
    )
