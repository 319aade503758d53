"""What happens in one training step, in the graph and on every replica.

`build_train_steps` returns the function that the loop calls. For each step:

1. Every replica gets its part of the global batch (`distribution`).
2. The weights of the loss terms, such as the number of masked words, are summed over
   all replicas. They depend on the features alone, so no forward pass is needed.
3. Each replica runs its micro-batches forward and backward
   (`build_gradient_function`). The losses are the model's (`TaskModel.loss_sums`).
4. Loss terms and gradients are summed over micro-batches and replicas.
5. `apply_gradients` clips the sum by its global norm and lets the optimizer update the
   weights (`optimization.adam_weight_decay`).

A loss term is a sum over examples divided by a weight, not a mean of means. The weights
are added up over the global batch first, and every backward pass then differentiates
sum / global weight. Gradients of parts of a batch therefore simply add up, and the
result does not depend on how the batch is divided into replicas and micro-batches. Mean
losses do not have this property: a part with few masked words would count as much as
a part with many.

`measure` takes a few steps for --dry_run.
"""

import contextlib
import datetime
import resource
import statistics
import sys
import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.optimization import adam_weight_decay
from bert_tf.training import distribution

# Columns of a batch that are not features of an example.
EXAMPLE_INDEX = "example_index"
STEP = "step"
# Name of the loss scale among the values of a step, in float16.
LOSS_SCALE = "loss_scale"
# Values of keras.mixed_precision and tf.keras.
INITIAL_LOSS_SCALE = 2.0**15
STEPS_TO_GROW = 2000
# With a smaller scale float16 would represent less than without scaling.
MIN_LOSS_SCALE = 1.0
_FACTOR = 2.0
# Of --dry_run. The first steps compile, and choose how to compute each shape.
_WARM_UP_STEPS, _TIMED_STEPS = 2, 5

# Gradients by the index of their variable in `model.trainable_variables`.
Gradients = dict[int, tf.Tensor]


def build_train_steps(
    model: Any,
    optimizer: Any,
    strategy: tf.distribute.Strategy,
    *,
    random_seed: int,
    micro_batches: int = 1,
    jit_compile: bool = False,
) -> Callable[[Any, tf.Tensor], dict[str, tf.Tensor]]:
    """Returns a function that takes many optimizer steps in one call.

    Args:
        model: built, created in the strategy's scope.
        optimizer: likewise.
        strategy: the devices.
        random_seed: seed of dropout.
        micro_batches: number of parts that each replica splits its batch into.
        jit_compile: whether XLA compiles the forward and backward pass. On TPUs it
            always compiles everything.

    Returns:
        `train_steps(iterator, num_steps)`, a `tf.function`. It returns a dict of
        float32 [num_steps]: `loss`, each loss term, `learning_rate`,
        `global_grad_norm` before clipping, and in float16 `loss_scale`.
    """
    on_tpu = distribution.runs_on(strategy, "TPU")
    compute_gradients = build_gradient_function(
        model, random_seed, jit_compile, on_tpu=on_tpu
    )
    loss_scale = optimizer.loss_scale
    # Replicas share one CPU only in trials, and XLA does not know such devices.
    is_cpu_step = (
        distribution.runs_on(strategy, "CPU")
        and strategy.num_replicas_in_sync == 1
        and not jit_compile
    )
    optimizer.compiles_updates = is_cpu_step

    def replica_step(batch):
        weights = sum_over_replicas(model.loss_weights(_features(batch)))
        weights = {
            name: weight + model.loss_epsilons.get(name, 0.0)
            for name, weight in weights.items()
        }
        scale = {}
        if loss_scale is not None:
            scale = {LOSS_SCALE: tf.convert_to_tensor(loss_scale.scale)}
        terms, gradients = _accumulate(
            compute_gradients, batch, weights | scale, micro_batches
        )
        terms = sum_over_replicas(terms)
        rate = tf.cast(optimizer.learning_rate, tf.float32)
        norm = apply_gradients(model, optimizer, gradients, rate)
        loss = {"loss": tf.add_n(list(terms.values()))}
        return loss | terms | {"learning_rate": rate, "global_grad_norm": norm} | scale

    names = ["loss", *model.loss_names, "learning_rate", "global_grad_norm"]
    names += [LOSS_SCALE] if loss_scale is not None else []

    # AutoGraph would convert the whole model's code, which takes seconds.
    @tf.function(autograph=False)
    def train_steps(iterator, num_steps):
        def take_step(index, history):
            batch = next(iterator)
            context: Any = contextlib.nullcontext()
            if is_cpu_step:  # The model sees one micro-batch at a time.
                context = model.cpu_step(batch[EXAMPLE_INDEX].shape[0] // micro_batches)
            with context:
                values = strategy.run(replica_step, args=(batch,))
            first = [strategy.experimental_local_results(values[n])[0] for n in names]
            return index + 1, history.write(index, tf.stack(first))

        history = tf.TensorArray(tf.float32, size=num_steps, element_shape=[len(names)])
        _, history = tf.while_loop(
            lambda index, history: index < num_steps, take_step, (0, history)
        )
        columns = tf.unstack(history.stack(), num=len(names), axis=1)
        return dict(zip(names, columns, strict=True))

    return train_steps


def build_gradient_function(
    model: Any,
    random_seed: int,
    jit_compile: bool = False,
    *,
    on_tpu: bool = False,
) -> Callable[[dict[str, tf.Tensor], Mapping[str, tf.Tensor]], Any]:
    """Returns a function (micro-batch, global weights) -> (loss terms, gradients).

    The weights are a dict from loss term to float32 scalar. If it also has
    `loss_scale`, the gradients are those of the loss times that scale.

    The gradients are `Gradients`. Variables that no loss depends on have none. The
    optimizer leaves them unchanged, without weight decay, as in the release.
    """
    variables = [variable.value for variable in model.trainable_variables]

    def compute_gradients(batch, weights):
        is_compiled = jit_compile or on_tpu
        with model.xla_step() if is_compiled else contextlib.nullcontext():
            return compute_plainly(batch, weights)

    def compute_plainly(batch, weights):
        # Dropout is a function of (seed, step, index of the example in the global
        # batch, layer), never of a generator's state. A step therefore drops the same
        # units on any number of replicas, and again after a restart.
        keys = model.dropout_keys(random_seed, batch[STEP], batch[EXAMPLE_INDEX])
        features = _features(batch)
        # Watching only trainable variables ends the backward pass at weights that a
        # user's model does not train.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            outputs = with_gathered_outputs(
                model, model.training_outputs(features, keys)
            )
            terms = {
                name: term / weights[name]
                for name, term in model.loss_sums(features, outputs).items()
            }
            loss = tf.add_n(list(terms.values()))
            if LOSS_SCALE in weights:
                loss = loss * weights[LOSS_SCALE]
        gradients = tape.gradient(loss, variables)
        return terms, {
            index: tf.convert_to_tensor(gradient)
            for index, gradient in enumerate(gradients)
            if gradient is not None
        }

    if jit_compile:
        return tf.function(compute_gradients, jit_compile=True, autograph=False)
    return compute_gradients


def apply_gradients(
    model: Any, optimizer: Any, gradients: Gradients, rate: tf.Tensor
) -> tf.Tensor:
    """Sums gradients over replicas, clips them and updates the weights.

    With `optimizer.loss_scale` they are gradients of the scaled loss. If their sum is
    not finite, no weight and no slot changes, on any replica.

    Args:
        model: the model.
        optimizer: of `adam_weight_decay.create_optimizer`, built.
        gradients: of this replica.
        rate: learning rate, float32 scalar.

    Returns:
        The global norm before clipping, float32 scalar.
    """
    summed = sum_over_replicas(list(gradients.values()))
    loss_scale = optimizer.loss_scale
    if loss_scale is not None:
        scale = tf.convert_to_tensor(loss_scale.scale)
        summed = [gradient / scale for gradient in summed]
    # A rare batch with a huge gradient would otherwise spoil Adam's moments,
    # especially the second one, which averages over a thousand steps. Scaling by the
    # norm of the whole gradient keeps its direction. The gradient is that of the
    # global batch: on a TPU the release clipped the gradient of each core before it
    # averaged them, so its result depended on the number of cores (optimization.py,
    # 2018).
    norm = tf.linalg.global_norm(summed)
    largest = adam_weight_decay.CLIP_NORM
    # 1 if the norm is small enough, and not a number if the norm is infinite.
    scale = largest / tf.maximum(norm, largest) + (norm - norm)
    # All replicas read the same sum, so they skip a step together. Keras's
    # LossScaleOptimizer decides by the gradient of the first replica.
    is_finite = tf.math.is_finite(norm)

    trainable = model.trainable_variables  # Collected from all layers at each access.
    variables = [trainable[index] for index in gradients]
    scalars = optimizer.step_scalars(rate, scale)

    def update_one(part, gradient, scalars, is_finite):
        if loss_scale is None:
            optimizer.update_variable(gradient, part, scalars)
            return

        def take_step():
            optimizer.update_variable(gradient, part, scalars)
            return 0

        tf.cond(is_finite, take_step, lambda: 0)

    def update_all(strategy, summed, scalars, is_finite):
        for gradient, variable in zip(summed, variables, strict=True):
            strategy.extended.update(
                variable.value,
                update_one,
                args=(gradient, scalars, is_finite),
                group=False,
            )
        if loss_scale is not None:
            loss_scale.update(strategy, is_finite)

    context = tf.distribute.get_replica_context()
    context.merge_call(update_all, args=(summed, scalars, is_finite))
    # A skipped step counts too: batch, rate and dropout are functions of the step.
    optimizer.iterations.assign_add(1)
    return norm


def sum_over_replicas(tensors: Any) -> Any:
    """Returns a structure of tensors, each summed over all replicas."""
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return tensors
    return context.all_reduce(tf.distribute.ReduceOp.SUM, tensors)


def with_gathered_outputs(
    model: Any, outputs: dict[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Adds `all_NAME` for each of the model's `gathered_outputs`.

    It has the rows of all replicas, in order, for losses that compare all examples of
    the global batch.
    """
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return outputs
    gathered = {
        f"all_{name}": _gather_rows(outputs[name], context)
        for name in model.gathered_outputs
    }
    return outputs | gathered


class LossScale:
    """Dynamic loss scaling: the factor that multiplies a loss before its gradient.

    Small gradients are 0 in float16, so the loss is scaled up as far as gradients stay
    finite. The scale is halved, down to 1, after a gradient that is not finite, and
    doubled after 2,000 steps without one. Both depend on the gradient that is summed
    over all replicas, so all replicas take a step or skip it together.

    Create it in the strategy's scope. `steps` is the number of steps since the scale
    changed.
    """

    def __init__(self) -> None:
        settings = {"trainable": False, "aggregation": "only_first_replica"}
        self.scale = keras.Variable(INITIAL_LOSS_SCALE, dtype="float32", **settings)
        self.steps = keras.Variable(0, dtype="int32", **settings)

    def update(self, strategy: tf.distribute.Strategy, is_finite: tf.Tensor) -> None:
        """Sets the scale of the next step, in a merge call.

        `is_finite` is a bool scalar, the same on all replicas.
        """

        def set_scale(scale, is_finite, steps):
            grown = tf.where(steps + 1 >= STEPS_TO_GROW, scale * _FACTOR, scale)
            smaller = tf.maximum(scale / _FACTOR, MIN_LOSS_SCALE)
            scale.assign(tf.where(is_finite, grown, smaller))

        def set_steps(steps, is_finite):
            is_same = tf.logical_and(is_finite, steps + 1 < STEPS_TO_GROW)
            steps.assign(tf.where(is_same, steps + 1, 0))

        scale, steps = self.scale.value, self.steps.value
        update = strategy.extended.update
        update(scale, set_scale, args=(is_finite, steps), group=False)
        update(steps, set_steps, args=(is_finite,), group=False)


def _gather_rows(rows, context):
    """Returns [replicas * B, ...] of [B, ...]; gradients flow back to each replica.

    Each replica contributes its own rows and zeros elsewhere, and the sum is taken.
    Unlike `all_gather`, a sum has a gradient and a static shape.
    """
    replicas = context.num_replicas_in_sync
    is_own = tf.one_hot(context.replica_id_in_sync_group, replicas, dtype=rows.dtype)
    is_own = tf.reshape(is_own, [replicas] + [1] * rows.shape.rank)
    parts = context.all_reduce(tf.distribute.ReduceOp.SUM, is_own * rows[tf.newaxis])
    return tf.reshape(parts, [-1, *rows.shape[1:]])


def _accumulate(compute_gradients, batch, weights, micro_batches):
    """Returns loss terms and gradients, summed over a replica's micro-batches."""
    if micro_batches == 1:
        return compute_gradients(batch, weights)
    # A mirrored iterator does not know the rows of a batch if lengths differ.
    parts = {
        name: distribution.split(column, micro_batches)
        for name, column in batch.items()
    }

    def compute_part(index):
        part = {name: column[index] for name, column in parts.items()}
        return compute_gradients(part, weights)

    def add_next(index, total):
        return index + 1, tf.nest.map_structure(tf.add, total, compute_part(index))

    _, totals = tf.while_loop(
        lambda index, total: index < micro_batches,
        add_next,
        (tf.constant(1), compute_part(0)),
        parallel_iterations=1,
    )
    return totals


def _features(batch):
    return {n: c for n, c in batch.items() if n not in (EXAMPLE_INDEX, STEP)}


def measure(trainer: Any, examples: Any, *, num_steps: int | None = None) -> str:
    """Takes a few steps, which are not saved; returns the size and time of the run.

    Args:
        trainer: `loop.Trainer` of the run.
        examples: what it trains on.
        num_steps: steps on these examples; default: those that the trainer has left.
    """
    if num_steps is None:
        num_steps = max(trainer.num_train_steps - trainer.step, 0)
    count = min(num_steps, _WARM_UP_STEPS + _TIMED_STEPS)
    train_steps, iterator = trainer.prepare_steps(examples)
    durations = []
    for number in range(count):
        started = time.monotonic()
        losses = train_steps(iterator, tf.constant(1))["loss"].numpy()
        durations.append(time.monotonic() - started)
        values = {"loss": float(losses[0])}
        progress_module.report(
            "measure", number + 1, count, unit="steps", values=values
        )
    timed = durations[_WARM_UP_STEPS:] or durations[-1:] or [0.0]
    seconds = num_steps * statistics.median(timed)
    if (limit := trainer.budget.seconds) is not None and seconds:
        num_steps, seconds = int(num_steps * limit / seconds), limit
    lines = [
        f"parameters        {trainer.model.count_params():,}",
        f"steps             {num_steps:,}",
    ]
    if (memory := _peak_memory(trainer.strategy)) is not None:
        lines.append(f"memory            {memory / 2**30:.2f} GiB")
    lines.append(
        f"time              {datetime.timedelta(seconds=int(seconds))} (at the speed "
        "of a few steps now; evaluations come on top)"
    )
    return "\n".join(lines)


def _peak_memory(strategy):
    """Returns the peak of a GPU's memory or of this process's, in bytes."""
    if distribution.runs_on(strategy, "TPU"):
        return None
    if distribution.runs_on(strategy, "GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
