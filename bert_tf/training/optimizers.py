"""The optimizer of a run, and the loss scale that float16 needs."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.optimization import create
from bert_tf.training import options as training_options
from bert_tf.training import protocols

# Values of keras.mixed_precision and tf.keras.
INITIAL_LOSS_SCALE = 2.0**15
STEPS_TO_GROW = 2000
# With a smaller scale float16 would represent less than without scaling.
MIN_LOSS_SCALE = 1.0
_FACTOR = 2.0


def create_optimizer(
    model: protocols.TaskModel,
    options: training_options.OptimizerOptions,
    *,
    num_train_steps: int,
    num_warmup_steps: int,
    scale_loss: bool = False,
    schedule: keras.optimizers.schedules.LearningRateSchedule | None = None,
) -> Any:
    """Returns an optimizer that is built for the trainable variables of a model.

    Args:
        model: built model, its frozen layers already frozen.
        options: which optimizer, and its learning rate.
        num_train_steps: the step at which the rate reaches 0.
        num_warmup_steps: steps over which the rate rises.
        scale_loss: whether to give the optimizer a `LossScale`, as float16 needs.
        schedule: learning rates to use instead of warm-up and decay by step.
    """
    optimizer = create.create_optimizer(
        options.learning_rate,
        num_train_steps,
        num_warmup_steps,
        schedule=schedule,
        name=options.optimizer,
    )
    optimizer.build(model.trainable_variables)
    if scale_loss:
        optimizer.loss_scale = LossScale()
    return optimizer


class LossScale:
    """Dynamic loss scaling: the factor that multiplies a loss before its gradient.

    Small gradients are 0 in float16, so the loss is scaled up as far as gradients stay
    finite. The scale is halved, down to 1, after a gradient that is not finite, and
    doubled after 2,000 steps without one. Both depend on the gradient that is summed
    over all replicas, so all replicas take a step or skip it together.

    Create it in the strategy's scope.

    Attributes:
        scale: float32 variable.
        steps: int32 variable, steps since the scale changed.
    """

    def __init__(self, initial_scale: float = INITIAL_LOSS_SCALE):
        settings = {"trainable": False, "aggregation": "only_first_replica"}
        self.scale = keras.Variable(initial_scale, dtype="float32", **settings)
        self.steps = keras.Variable(0, dtype="int32", **settings)

    def update(self, strategy: tf.distribute.Strategy, is_finite: tf.Tensor) -> None:
        """Sets the scale of the next step. Call it in a merge call.

        Args:
            strategy: the devices.
            is_finite: bool scalar, the same on all replicas.
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
