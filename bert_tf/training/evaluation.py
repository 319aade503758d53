"""Scores and predictions of a model over all examples of a source."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.training import distribution
from bert_tf.training import options as training_options
from bert_tf.training import steps
from bert_tf.training import workers


class Evaluation:
    """Runs a model over examples, without dropout.

    Args:
        model: built, created in the strategy's scope.
        strategy: the devices.
        options: the batch size.
        length_buckets: lengths that batches are padded to; empty: the full length.
        stage: name of the work in progress reports.
    """

    def __init__(
        self,
        model: Any,
        strategy: tf.distribute.Strategy,
        options: training_options.EvaluationOptions,
        *,
        length_buckets: Sequence[int] = (),
        stage: str = "evaluate",
    ):
        self._model = model
        self._strategy = strategy
        self._batch_size = options.eval_batch_size
        self._length_buckets = tuple(length_buckets)
        self._progress = functools.partial(progress_module.report, stage)
        self._predict_steps: dict[tuple[str, ...], Any] = {}
        self._workers = workers.Workers(strategy)

    def evaluate(
        self, examples: Any, *, max_examples: int | None = None
    ) -> dict[str, float]:
        """Returns means over the first or all examples: loss, its terms, metrics."""
        totals: dict[str, float] = {}
        order = None if max_examples else self._order(examples)
        for values in self._run(
            examples, self._evaluate_step, order=order, max_examples=max_examples
        ):
            # Each fetch waits for the device, so all sums are fetched at once.
            sums = tf.stack(list(values.values())).numpy()
            for name, value in zip(values, sums, strict=True):
                totals[name] = totals.get(name, 0.0) + float(value)
        means = {}
        for name in [key[4:] for key in totals if key.startswith("sum/")]:
            epsilon = self._model.loss_epsilons.get(name, 0.0)
            weight = totals[f"weight/{name}"] + epsilon
            means[name] = totals[f"sum/{name}"] / weight if weight else float("nan")
        return means | {"loss": sum(means[name] for name in self._model.loss_names)}

    def predict(
        self,
        examples: Any,
        keys: Sequence[str] = ("probabilities",),
    ) -> dict[str, np.ndarray]:
        """Returns the model's outputs for all examples, in order.

        Args:
            examples: source of batches.
            keys: names of outputs, each [B, ...].

        Returns:
            Arrays [number of examples, ...]. Outputs per position have the full length
            of the examples. Positions that a length bucket cut off have the model's
            `padding_logit` as logit, and 0 in other outputs.

        Raises:
            ValueError: an output is NaN. An argmax would hide that.
        """
        keys = tuple(keys)
        if keys not in self._predict_steps:
            self._predict_steps[keys] = self._build_predict_step(keys)
        predict_step = self._predict_steps[keys]
        lengths = {column.name: column.length for column in examples.columns}
        full_length = tf.constant(lengths.get("input_ids", 0))
        rows: dict[str, list[np.ndarray]] = {key: [] for key in keys}
        order = self._order(examples)
        for values in self._run(
            examples, lambda iterator: predict_step(iterator, full_length), order=order
        ):
            is_real = values["is_real_example"].numpy() > 0
            for key in keys:
                rows[key].append(values[key].numpy()[is_real])
        places = slice(None) if order is None else np.argsort(order)
        # Each output's batches are freed before the next output is copied.
        outputs = {key: np.concatenate(rows.pop(key))[places] for key in keys}
        for key, output in outputs.items():
            _check_numbers(key, output)
        return outputs

    def _order(self, examples):
        """Returns the examples' indices, the longest first; None: as they come.

        Batches of similar lengths contain less padding. A batch that does not fit into
        memory fails at once.
        """
        lengths = examples.row_lengths() if self._length_buckets else None
        return None if lengths is None else np.argsort(-lengths, kind="stable")

    def _run(self, examples, step_function, *, order, max_examples=None):
        """Yields the step function's result for each batch."""
        batch_size = self._batch_size
        distribution.check_batch_size("eval_batch_size", batch_size, self._strategy)
        arguments: dict[str, Any] = {"length_buckets": self._length_buckets}
        if order is not None:  # Sources whose lengths are unknown do not take it.
            arguments["order"] = order
        batches = examples.evaluation_batches(batch_size=batch_size, **arguments)
        iterator = distribution.distribute(batches, self._strategy)
        num_examples = min(examples.num_examples, max_examples or examples.num_examples)
        num_steps = -(-num_examples // batch_size)
        for index in range(num_steps):
            with self._workers.clear_errors(), examples.clear_errors():
                values = step_function(iterator)
            yield values
            self._progress(index + 1, num_steps, unit="batches")

    @functools.cached_property
    def _evaluate_step(self):
        """A function from an iterator to one batch's sums over all replicas.

        They are `sum/NAME` and `weight/NAME`, float32 scalars, of losses and metrics.
        """
        model, strategy = self._model, self._strategy

        def replica_step(batch):
            outputs = steps.with_gathered_outputs(model, model(batch, training=False))
            loss_sums = model.loss_sums(batch, outputs)
            loss_weights = model.loss_weights(batch)
            sums = {f"sum/{name}": value for name, value in loss_sums.items()}
            sums |= {f"weight/{name}": value for name, value in loss_weights.items()}
            for name, (value, weight) in model.metric_sums(batch, outputs).items():
                sums[f"sum/{name}"] = value
                sums[f"weight/{name}"] = weight
            return steps.sum_over_replicas(sums)

        @tf.function(autograph=False)
        def evaluate_step(iterator):
            values = strategy.run(replica_step, args=(next(iterator),))
            return tf.nest.map_structure(
                lambda value: strategy.experimental_local_results(value)[0], values
            )

        return evaluate_step

    def _build_predict_step(self, keys):
        """Returns a function (iterator, S) -> one batch's outputs, rows in order.

        S, int32, is the full length of outputs per position. `is_real_example` is added
        to the `keys`.
        """
        model, strategy = self._model, self._strategy
        has_workers = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)

        def replica_step(batch):
            outputs = model(batch, training=False)
            chosen = {key: outputs[key] for key in keys}
            chosen["is_real_example"] = batch["is_real_example"]
            if not has_workers:
                return chosen
            # `local_results` below does not see the replicas of other workers.
            return {name: _gather_from_workers(value) for name, value in chosen.items()}

        def local_results(value):
            results = strategy.experimental_local_results(value)
            return results[:1] if has_workers else results

        @tf.function(autograph=False)
        def predict_step(iterator, full_length):
            values = strategy.run(replica_step, args=(next(iterator),))
            return {
                key: _pad_cut_axes(
                    tf.concat(local_results(value), axis=0),
                    full_length,
                    model.padding_logit if key.endswith("logits") else 0,
                )
                for key, value in values.items()
            }

        return predict_step


def _check_numbers(key, values):
    is_nan = np.isnan(values).reshape(len(values), -1).any(axis=1)
    if is_nan.any():
        raise ValueError(
            f"The model's {key} are NaN for {is_nan.sum():,} of {len(values):,} "
            f"examples, the first of them number {np.argmax(is_nan)} (from 0); use "
            "--dtype=float32 or an earlier checkpoint."
        )


def _gather_from_workers(rows):
    """Returns [global B, ...] of [B, ...], the rows of all workers in order."""
    context = tf.distribute.get_replica_context()
    # all_gather requires a device, which some tensors only have after tf.identity.
    gathered = context.all_gather(tf.identity(rows), axis=0)
    # all_gather loses the static sizes.
    return tf.ensure_shape(gathered, [None, *rows.shape[1:]])


def _pad_cut_axes(values, full_length, padding_value):
    """Pads the axes whose size a length bucket decides: those without a static size."""
    is_cut = [axis > 0 and size is None for axis, size in enumerate(values.shape)]
    if not any(is_cut):
        return values
    sizes = tf.shape(values)
    missing = tf.where(is_cut, full_length - sizes, 0)
    paddings = tf.stack([tf.zeros_like(sizes), missing], axis=1)
    return tf.pad(
        values, paddings, constant_values=tf.cast(padding_value, values.dtype)
    )
