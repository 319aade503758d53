"""What every tool that fine-tunes does alike, whatever its data, model and scores."""

import dataclasses
import logging

from bert_tf import progress as progress_module
from bert_tf.training import distribution
from bert_tf.training import evaluation as training_evaluation
from bert_tf.training import loop
from bert_tf.training import selection

logger = logging.getLogger(__name__)


def run(task_run, options) -> str:
    """Trains, evaluates and predicts as the options say.

    Args:
        task_run: has `dry_run_report()`, text; `train()` and `evaluate()`, numbers by
            name; `predict()`, lines that tell where the predictions are.
        options: `task_options.TaskOptions`.

    Returns:
        What was reached, for the reader.
    """
    if options.dry_run:
        return task_run.dry_run_report()
    lines = []
    if options.do_train:
        lines.append(trained_line(task_run.train()))
    if options.do_eval:
        lines += score_lines(task_run.evaluate())
    if options.do_predict:
        lines += task_run.predict()
    return "\n".join([*lines, place_line(options)])


def trained_line(reached) -> str:
    """Returns a line about what `loop.Trainer.train` returned."""
    return f"Trained to step {reached['global_step']}, loss {reached['loss']:.4f}."


def score_lines(results) -> list[str]:
    """Returns a line for each score, in the order of their names."""
    return [f"{name} = {results[name]}" for name in sorted(results)]


def place_line(options) -> str:
    """Returns the line that ends every report."""
    return f"The run is in {options.output_dir}."


def only_training(options):
    """Returns options that train and do nothing else."""
    return dataclasses.replace(options, do_train=True, do_eval=False, do_predict=False)


def only_evaluation(options):
    """Returns options that evaluate and do nothing else."""
    return dataclasses.replace(options, do_train=False, do_eval=True, do_predict=False)


def num_train_steps(num_rows, options, *, unit="examples") -> int:
    """Returns the steps of a run as in 2018: whole batches of the epochs in a row.

    Args:
        num_rows: int, what an epoch goes over.
        options: `task_options.TaskOptions`.
        unit: what is counted, for the reader.

    Raises:
        ValueError: all epochs together do not fill a batch.
    """
    batch_size, epochs = options.train_batch_size, options.num_train_epochs
    num_steps = int(num_rows / batch_size * epochs)
    if num_steps == 0:
        raise ValueError(
            f"{num_rows} {unit} × {epochs:g} epochs give not one batch of "
            f"{batch_size}; lower --train_batch_size or raise --num_train_epochs."
        )
    return num_steps


def create_trainer(
    create_model,
    options,
    num_steps,
    *,
    score_names,
    prediction_flag="predict_batch_size",
    progress=progress_module.silent,
) -> loop.Trainer:
    """Returns the trainer of a run.

    Args:
        create_model: called without arguments under the strategy; returns a
            `TaskModel`.
        options: `task_options.TaskOptions`.
        num_steps: int, see `num_train_steps`; 0 for a run that does not train.
        score_names: called without arguments where training is interrupted by
            evaluations; returns the names of their scores.
        prediction_flag: name of the option with the batch size of predictions.
        progress: see `bert_tf.progress`.

    Raises:
        ValueError: a batch cannot be divided among the replicas, or the evaluations
            do not have the best_metric.
    """
    if options.do_train and options.eval_every_steps:
        selection.check_metric(options.best_metric, score_names())
    trainer = loop.Trainer(
        create_model,
        options,
        num_train_steps=num_steps,
        num_warmup_steps=int(num_steps * options.warmup_proportion),
        frozen_layers=options.frozen_layers,
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


def train(trainer, setup, source, *, counts, evaluate) -> dict[str, float]:
    """Writes the run's settings and trains to the last step.

    Args:
        trainer: `loop.Trainer`.
        setup: `run_setup.RunSetup`.
        source: called without arguments when all else is checked and written; returns
            a source of batches.
        counts: what the log tells first, name -> int.
        evaluate: called without arguments, returns scores by name.

    Returns:
        {"loss", "global_step"}.

    Raises:
        ValueError: output_dir holds a run with other settings.
    """
    options = trainer.options
    if trainer.resumed:
        trainer.folder.check_same_run(setup.config, options)
    trainer.folder.create()
    trainer.folder.write_settings(
        task=setup.task.to_dict(),
        config=setup.config,
        vocabulary=setup.vocabulary,
        options=options,
    )
    logger.info("***** Running training *****")
    for name, value in counts.items():
        logger.info("  %s = %d", name, value)
    logger.info("  Batch size = %d", options.train_batch_size)
    logger.info("  Num steps = %d", trainer.num_train_steps)
    return trainer.train(
        source(), evaluate=evaluate, group_by_length=options.group_by_length
    )


def write_results(trainer, scores) -> dict[str, float]:
    """Writes eval_results.txt with the release's names too, and returns its numbers.

    Args:
        trainer: `loop.Trainer`.
        scores: by name; the release's `loss` is `eval_loss`.
    """
    results = scores | {"global_step": trainer.step}
    if "eval_loss" in results:
        results["loss"] = results["eval_loss"]
    trainer.folder.create()
    trainer.folder.write_eval_results(results)
    return results


def prediction(
    trainer, *, batch_size=None, progress=progress_module.silent
) -> training_evaluation.Evaluation:
    """Returns what applies a run's model to the examples to predict.

    Args:
        trainer: `loop.Trainer`.
        batch_size: int, rows per step over all replicas; None: `predict_batch_size` of
            the options.
        progress: see `bert_tf.progress`.
    """
    batch_size = batch_size or trainer.options.predict_batch_size
    options = dataclasses.replace(trainer.options, eval_batch_size=batch_size)
    return training_evaluation.Evaluation(
        trainer.model,
        trainer.strategy,
        options,
        length_buckets=options.length_buckets,
        progress=progress,
    )
