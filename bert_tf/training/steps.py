"""What one step computes: losses, gradients, update; in graph, on every replica.

A loss term is a sum over examples and a weight that depends on the features alone.
Weights are added up over micro-batches and replicas first. Each backward pass then
differentiates sum / global weight, so gradients simply add, and the result does not
depend on how the global batch is divided.
"""

import tensorflow as tf

from bert_tf.training import updates

# Columns of a batch that are not features of an example.
EXAMPLE_INDEX = "example_index"
STEP = "step"
# Beside the weights of the loss terms, in float16.
LOSS_SCALE = "loss_scale"
# The logit of a place that a length bucket cut off: numerics.ATTENTION_MASK_BIAS.
CUT_LOGIT = -10000.0


def build_train_steps(model, optimizer, strategy, *, random_seed, options):
    """Returns a function that takes many optimizer steps in one call.

    Args:
        model: built `heads.TaskModel`, created in the strategy's scope.
        optimizer: built in the strategy's scope; with `loss_scale` if it has one.
        strategy: `tf.distribute.Strategy`.
        random_seed: int; dropout is a function of it, the step and the example.
        options: `TrainingOptions`; of it gradient_accumulation_steps, jit_compile.

    Returns:
        `train_steps(iterator, num_steps)`, a `tf.function`; gives a dict of float32
        [num_steps]: `loss`, each loss term, `learning_rate`, `global_grad_norm`
        before clipping, and `loss_scale` where there is one.
    """
    gradients_of = _gradient_function(model, random_seed, options.jit_compile)
    micro_batches = options.gradient_accumulation_steps
    loss_scale = getattr(optimizer, "loss_scale", None)

    def replica_step(batch):
        weights = model.loss_weights(_features(batch))
        weights = updates.sum_over_replicas(weights)
        weights = {
            name: weight + model.loss_epsilons.get(name, 0.0)
            for name, weight in weights.items()
        }
        scale = {}
        if loss_scale is not None:
            scale = {LOSS_SCALE: tf.convert_to_tensor(loss_scale.scale)}
        terms, gradients = _accumulate(
            gradients_of, batch, weights | scale, micro_batches
        )
        terms = updates.sum_over_replicas(terms)
        rate = tf.cast(optimizer.learning_rate, tf.float32)
        norm = updates.update(model, optimizer, gradients, rate)
        loss = tf.add_n(list(terms.values()))
        return {
            "loss": loss,
            **terms,
            "learning_rate": rate,
            "global_grad_norm": norm,
            **scale,
        }

    names = ["loss", *model.loss_names, "learning_rate", "global_grad_norm"]
    names += [LOSS_SCALE] if loss_scale is not None else []

    @tf.function
    def train_steps(iterator, num_steps):
        history = tf.TensorArray(tf.float32, size=num_steps, element_shape=[len(names)])
        for index in tf.range(num_steps):
            values = strategy.run(replica_step, args=(next(iterator),))
            first = [strategy.experimental_local_results(values[n])[0] for n in names]
            history = history.write(index, tf.stack(first))
        columns = tf.unstack(history.stack(), num=len(names), axis=1)
        return dict(zip(names, columns, strict=True))

    return train_steps


def build_evaluate_step(model, strategy):
    """Returns a function from an iterator to one batch's sums, over all replicas.

    The dict holds `sum/NAME` and `weight/NAME`, float32 scalars, for every loss term
    and every metric.
    """

    def replica_step(batch):
        outputs = _with_gathered(model, model(batch, training=False))
        loss_sums = model.loss_sums(batch, outputs)
        loss_weights = model.loss_weights(batch)
        sums = {f"sum/{name}": value for name, value in loss_sums.items()}
        sums |= {f"weight/{name}": value for name, value in loss_weights.items()}
        for name, (value, weight) in model.metric_sums(batch, outputs).items():
            sums[f"sum/{name}"] = value
            sums[f"weight/{name}"] = weight
        return updates.sum_over_replicas(sums)

    @tf.function
    def evaluate_step(iterator):
        values = strategy.run(replica_step, args=(next(iterator),))
        return tf.nest.map_structure(
            lambda value: strategy.experimental_local_results(value)[0], values
        )

    return evaluate_step


def build_predict_step(model, strategy, keys):
    """Returns a function (iterator, S) -> one batch's outputs, rows in order.

    Where the batch was cut to a length bucket, outputs a place are filled up to the
    whole length, int32 S: with what the attention mask adds for logits, else with 0.

    Args:
        model: built `heads.TaskModel`.
        strategy: `tf.distribute.Strategy`.
        keys: names of the model's outputs, each [B, ...]. `is_real_example` is added.
    """
    has_workers = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)

    def replica_step(batch):
        outputs = model(batch, training=False)
        chosen = {key: outputs[key] for key in keys}
        chosen["is_real_example"] = batch["is_real_example"]
        if not has_workers:
            return chosen
        # The results of other workers' replicas are not local ones.
        return {name: _rows_of_workers(value) for name, value in chosen.items()}

    def local_results(value):
        results = strategy.experimental_local_results(value)
        return results[:1] if has_workers else results

    @tf.function
    def predict_step(iterator, full_length):
        values = strategy.run(replica_step, args=(next(iterator),))
        return {
            key: _filled(
                tf.concat(local_results(value), axis=0),
                full_length,
                CUT_LOGIT if key.endswith("logits") else 0,
            )
            for key, value in values.items()
        }

    return predict_step


def _rows_of_workers(rows):
    """Returns [global B, ...] of [B, ...], rows of all workers in order."""
    context = tf.distribute.get_replica_context()
    # Without tf.identity some have no device, which all_gather asks for.
    gathered = context.all_gather(tf.identity(rows), axis=0)
    # It forgets which sizes are known.
    return tf.ensure_shape(gathered, [None, *rows.shape[1:]])


def _filled(values, full_length, filling):
    """Fills the axes up whose length a bucket decides; others are known when traced."""
    is_cut = [axis > 0 and size is None for axis, size in enumerate(values.shape)]
    if not any(is_cut):
        return values
    sizes = tf.shape(values)
    missing = tf.where(is_cut, full_length - sizes, 0)
    paddings = tf.stack([tf.zeros_like(sizes), missing], axis=1)
    return tf.pad(values, paddings, constant_values=tf.cast(filling, values.dtype))


def _features(batch):
    return {
        name: column
        for name, column in batch.items()
        if name not in (EXAMPLE_INDEX, STEP)
    }


def _gradient_function(model, random_seed, jit_compile=False):
    """Returns a function (micro-batch, global weights) -> (loss terms, gradients).

    Where the weights have a `loss_scale`, gradients are those of the loss times it.
    Gradients are a dict from a variable's place in `model.trainable_variables`.
    Weights that no loss reaches are left out: they stay as they are, without decay,
    as in the release.
    """
    variables = [variable.value for variable in model.trainable_variables]

    def outputs_of(features, keys):
        return model(features, training=True, dropout_keys=keys)

    # Replicas cannot meet within compiled code, so there the loss stays outside of it.
    is_whole = not model.gathered_outputs
    if jit_compile and not is_whole:
        outputs_of = tf.function(outputs_of, jit_compile=True, autograph=False)

    def gradients_of(batch, weights):
        keys = model.dropout_keys(random_seed, batch[STEP], batch[EXAMPLE_INDEX])
        features = _features(batch)
        # Watching no others ends the backward pass where frozen layers begin.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            outputs = _with_gathered(model, outputs_of(features, keys))
            terms = {
                name: term / weights[name]
                for name, term in model.loss_sums(features, outputs).items()
            }
            loss = tf.add_n(list(terms.values()))
            if LOSS_SCALE in weights:
                loss = loss * weights[LOSS_SCALE]
        gradients = tape.gradient(loss, variables)
        return terms, {
            place: tf.convert_to_tensor(gradient)
            for place, gradient in enumerate(gradients)
            if gradient is not None
        }

    if jit_compile and is_whole:
        return tf.function(gradients_of, jit_compile=True, autograph=False)
    return gradients_of


def _with_gathered(model, outputs):
    """Adds `all_NAME`: rows of all replicas in order, of what the loss compares."""
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return outputs
    gathered = {
        f"all_{name}": _rows_of_replicas(outputs[name], context)
        for name in model.gathered_outputs
    }
    return outputs | gathered


def _rows_of_replicas(rows, context):
    """Returns [replicas * B, ...] of [B, ...]; gradients flow back to each replica."""
    # A sum of parts that are 0 but for one's own has a gradient, and a static shape.
    replicas = context.num_replicas_in_sync
    is_own = tf.one_hot(context.replica_id_in_sync_group, replicas, dtype=rows.dtype)
    is_own = tf.reshape(is_own, [replicas] + [1] * rows.shape.rank)
    parts = context.all_reduce(tf.distribute.ReduceOp.SUM, is_own * rows[tf.newaxis])
    return tf.reshape(parts, [-1, *rows.shape[1:]])


def _accumulate(gradients_of, batch, weights, micro_batches):
    """Returns loss terms and gradients, added up over a replica's micro-batches."""
    if micro_batches == 1:
        return gradients_of(batch, weights)
    parts = {
        name: tf.reshape(
            column,
            [micro_batches, column.shape[0] // micro_batches]
            + [tf.shape(column)[i] if n is None else n for i, n in _dims(column)],
        )
        for name, column in batch.items()
    }

    def totals_of(index):
        part = {name: column[index] for name, column in parts.items()}
        return gradients_of(part, weights)

    def add_next(index, total):
        return index + 1, tf.nest.map_structure(tf.add, total, totals_of(index))

    _, totals = tf.while_loop(
        lambda index, total: index < micro_batches,
        add_next,
        (tf.constant(1), totals_of(0)),
        parallel_iterations=1,
    )
    return totals


def _dims(column):
    return list(enumerate(column.shape))[1:]
