"""From the gradients of all replicas to new weights."""

import tensorflow as tf

from bert_tf.optimization import create


def sum_over_replicas(tensors):
    """Returns the sums over all replicas of a structure of tensors."""
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return tensors
    return context.all_reduce(tf.distribute.ReduceOp.SUM, tensors)


def update(model, optimizer, gradients, rate):
    """Adds gradients up over replicas, clips them and takes a step of the optimizer.

    With `optimizer.loss_scale` they are those of the scaled loss; where their sum is
    not finite, no weight and no slot changes on any replica.

    Args:
        model: `heads.TaskModel`.
        optimizer: as `optimizers.create_optimizer` makes it.
        gradients: dict from a variable's place in `model.trainable_variables`.
        rate: float32 scalar.

    Returns:
        float32 scalar: the global norm before clipping.
    """
    places = list(gradients)
    summed = sum_over_replicas([gradients[place] for place in places])
    loss_scale = getattr(optimizer, "loss_scale", None)
    if loss_scale is not None:
        scale = tf.convert_to_tensor(loss_scale.scale)
        summed = [gradient / scale for gradient in summed]
    clipped, norm = tf.clip_by_global_norm(summed, create.CLIP_NORM)
    is_finite = tf.math.is_finite(norm)

    def update_one(part, gradient, rate, is_finite):
        if loss_scale is None:
            optimizer.update_step(gradient, part, rate)
            return

        def take_step():
            optimizer.update_step(gradient, part, rate)
            return 0

        tf.cond(is_finite, take_step, lambda: 0)

    def update_all(strategy, clipped, rate, is_finite):
        for gradient, place in zip(clipped, places, strict=True):
            strategy.extended.update(
                model.trainable_variables[place].value,
                update_one,
                args=(gradient, rate, is_finite),
                group=False,
            )
        if loss_scale is not None:
            loss_scale.update(strategy, is_finite)

    context = tf.distribute.get_replica_context()
    context.merge_call(update_all, args=(clipped, rate, is_finite))
    optimizer.iterations.assign_add(1)
    return norm
