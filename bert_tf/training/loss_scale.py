"""Loss scaling: small gradients survive float16, and large ones are left out."""

import keras
import tensorflow as tf

# As keras.mixed_precision and tf.keras have them.
START = 2.0**15
STEPS_TO_GROW = 2000
LEAST = 1.0  # Below it float16 would hold less than without scaling.
_FACTOR = 2.0


class LossScale:
    """What a loss is multiplied by before its gradient is taken.

    It is halved where a gradient is not finite, down to 1, and doubled after 2,000
    steps without one. Both happen to the gradient that is added up over all replicas,
    so all of them take a step or leave it out together.

    Create it in the strategy's scope.

    Attributes:
        scale: float32 variable.
        steps: int32 variable, steps since it changed.
    """

    def __init__(self, start=START):
        settings = {"trainable": False, "aggregation": "only_first_replica"}
        self.scale = keras.Variable(start, dtype="float32", **settings)
        self.steps = keras.Variable(0, dtype="int32", **settings)

    def update(self, strategy, is_finite):
        """Sets the scale of the next step; call it where replicas have merged.

        Args:
            strategy: `tf.distribute.Strategy`.
            is_finite: bool scalar, one for every replica and the same for all.
        """

        def set_scale(scale, is_finite, steps):
            grown = tf.where(steps + 1 >= STEPS_TO_GROW, scale * _FACTOR, scale)
            smaller = tf.maximum(scale / _FACTOR, LEAST)
            scale.assign(tf.where(is_finite, grown, smaller))

        def set_steps(steps, is_finite):
            is_same = tf.logical_and(is_finite, steps + 1 < STEPS_TO_GROW)
            steps.assign(tf.where(is_same, steps + 1, 0))

        scale, steps = self.scale.value, self.steps.value
        update = strategy.extended.update
        update(scale, set_scale, args=(is_finite, steps), group=False)
        update(steps, set_steps, args=(is_finite,), group=False)
