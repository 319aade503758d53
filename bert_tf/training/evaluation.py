"""Scores and predictions of a model over all examples."""

import numpy as np
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.training import distribution
from bert_tf.training import steps
from bert_tf.training import workers


class Evaluation:
    """Runs a model over examples, in order, dropout off.

    Args:
        model: built `heads.TaskModel`, created in the strategy's scope.
        strategy: `tf.distribute.Strategy`.
        options: `TrainingOptions`; of it eval_batch_size and length_buckets.
        progress: see `bert_tf.progress`.
    """

    def __init__(self, model, strategy, options, *, progress=progress_module.silent):
        self._model = model
        self._strategy = strategy
        self._options = options
        self._progress = progress
        self._step_functions = {}
        self._workers = workers.Workers(strategy)

    def evaluate(self, source, *, max_examples=None):
        """Returns means over the examples of `source`.

        Args:
            source: `batching.ArraySource` or `TFRecordSource`.
            max_examples: int; only the first ones, None for all.

        Returns:
            dict of floats: `loss`, each loss term, each metric.
        """
        evaluate_step = self._cached(
            "evaluate", lambda: steps.build_evaluate_step(self._model, self._strategy)
        )
        totals = {}
        for values in self._evaluated(source, evaluate_step, max_examples):
            for name, value in values.items():
                totals[name] = totals.get(name, 0.0) + float(value)
        means = {}
        for name in [key[4:] for key in totals if key.startswith("sum/")]:
            epsilon = self._model.loss_epsilons.get(name, 0.0)
            weight = totals[f"weight/{name}"] + epsilon
            means[name] = totals[f"sum/{name}"] / weight if weight else float("nan")
        return means | {"loss": sum(means[name] for name in self._model.loss_names)}

    def predict(self, source, keys=("probabilities",)):
        """Returns the model's outputs for all examples of `source`, in order.

        Args:
            source: `batching.ArraySource` or `TFRecordSource`.
            keys: names of outputs, each [B, ...].

        Returns:
            dict of arrays [number of examples, ...]; outputs a place have the
            source's whole length whatever the length buckets, with logits of -10000
            and else with 0 where a batch was cut.
        """
        predict_step = self._cached(
            tuple(keys),
            lambda: steps.build_predict_step(self._model, self._strategy, keys),
        )
        lengths = {column.name: column.length for column in source.columns}
        full_length = tf.constant(lengths.get("input_ids", 0))
        rows = {key: [] for key in keys}
        for values in self._evaluated(
            source, lambda iterator: predict_step(iterator, full_length)
        ):
            is_real = values["is_real_example"].numpy() > 0
            for key in keys:
                rows[key].append(values[key].numpy()[is_real])
        return {key: np.concatenate(parts) for key, parts in rows.items()}

    def _cached(self, key, build):
        """Returns a step function that was traced once for the whole run."""
        if key not in self._step_functions:
            self._step_functions[key] = build()
        return self._step_functions[key]

    def _evaluated(self, source, step_function, max_examples=None):
        """Yields the step function's result for each batch of `source`."""
        batch_size = self._options.eval_batch_size
        distribution.check_batch_size("eval_batch_size", batch_size, self._strategy)
        batches = source.evaluation_batches(
            batch_size=batch_size, length_buckets=self._options.length_buckets
        )
        iterator = distribution.distribute(batches, self._strategy)
        num_examples = min(source.num_examples, max_examples or source.num_examples)
        num_steps = -(-num_examples // batch_size)
        for index in range(num_steps):
            with self._workers.clear_errors(), source.clear_errors():
                values = step_function(iterator)
            yield values
            self._progress("evaluate", index + 1, num_steps, unit="batch")
