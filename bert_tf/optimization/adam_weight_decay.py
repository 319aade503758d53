"""The release's optimizer."""

import math
import re

import keras
import numpy as np
from keras import ops

# Names the release keeps from decaying.
EXCLUDED_FROM_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")


@keras.saving.register_keras_serializable("bert_tf")
class AdamWeightDecay(keras.optimizers.Optimizer):
    """Adam without bias correction, with decay decoupled from the moments.

        m      = beta_1 * m + (1 - beta_1) * gradient
        v      = beta_2 * v + (1 - beta_2) * gradient ** 2
        weight = weight - rate * (m / (sqrt(v) + epsilon) + decay * weight)

    Args:
        learning_rate: float or schedule.
        weight_decay_rate: float; the decay in the formula.
        beta_1: float.
        beta_2: float.
        epsilon: float, added to sqrt(v).
        exclude_from_weight_decay: regular expressions; a variable whose path matches
            one of them does not decay.
        name: str.
        **kwargs: those of `keras.optimizers.Optimizer`.

    Source: AdamWeightDecayOptimizer of optimization.py, 2018.
    """

    # What a checkpoint calls the two slots of a weight.
    slot_names = ("adam_m", "adam_v")

    def __init__(
        self,
        learning_rate=5e-5,
        *,
        weight_decay_rate=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        exclude_from_weight_decay=EXCLUDED_FROM_WEIGHT_DECAY,
        name="adam_weight_decay",
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.excluded_patterns = tuple(exclude_from_weight_decay)

    def build(self, variables):
        """Creates both slots of every variable."""
        if self.built:
            return
        super().build(variables)
        self._m, self._v = self.add_optimizer_variables(
            variables, list(self.slot_names)
        )
        self._decays = [self._is_decayed(variable.path) for variable in variables]

    def slots(self):
        """Returns a dict: slot name -> list of variables in the order of `build`."""
        return dict(zip(self.slot_names, (list(self._m), list(self._v)), strict=True))

    def update_step(self, gradient, variable, learning_rate):
        """Updates `variable` and its slots with a gradient of its shape."""
        index = self._get_variable_index(variable)
        gradient = ops.cast(gradient, variable.dtype)
        rate = ops.cast(learning_rate, variable.dtype)
        decay = self.weight_decay_rate if self._decays[index] else 0.0
        if keras.backend.backend() == "tensorflow":
            self._update_fused(variable, gradient, index, rate, decay)
        else:
            self._update_plainly(variable, gradient, index, rate, decay)

    def _update_plainly(self, variable, gradient, index, rate, decay):
        m, v = self._m[index], self._v[index]
        next_m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
        next_v = self.beta_2 * v + (1.0 - self.beta_2) * ops.square(gradient)
        update = next_m / (ops.sqrt(next_v) + self.epsilon) + decay * variable
        self.assign(m, next_m)
        self.assign(v, next_v)
        self.assign_sub(variable, rate * update)

    def _update_fused(self, variable, gradient, index, rate, decay):
        """The same through TensorFlow's Adam kernel: one pass over memory, not ten.

        Powers of 0 switch the kernel's bias correction off. Multiplying the weight by
        1 - rate * decay first equals adding decay * weight to the update. The kernel
        takes 1 - beta_2 in float32, which for 0.999 is 1.3e-5 too small; a gradient
        larger by the root of that, and a rate smaller by as much, make up for it.
        """
        import tensorflow as tf

        if isinstance(variable, keras.Variable):
            variable = variable.value
        scale = math.sqrt((1 - self.beta_2) / (1 - float(np.float32(self.beta_2))))
        if decay:
            variable.assign(variable * (1.0 - rate * decay))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._m[index].value.handle,
            v=self._v[index].value.handle,
            beta1_power=tf.zeros([], variable.dtype),
            beta2_power=tf.zeros([], variable.dtype),
            lr=rate / scale,
            beta1=tf.cast(self.beta_1, variable.dtype),
            beta2=tf.cast(self.beta_2, variable.dtype),
            epsilon=tf.cast(self.epsilon, variable.dtype),
            grad=gradient * scale,
        )

    def _is_decayed(self, path):
        return not any(re.search(pattern, path) for pattern in self.excluded_patterns)

    def get_config(self):
        """Returns the arguments that `from_config` takes."""
        config = super().get_config()
        # Keras's own decay multiplies every weight; ours knows the exceptions.
        config.pop("weight_decay", None)
        config.update(
            weight_decay_rate=self.weight_decay_rate,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            exclude_from_weight_decay=self.excluded_patterns,
        )
        return config
