"""The release's optimizer, Adam with decoupled weight decay, and LAMB, its subclass."""

import functools
import math
import re
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from bert_tf.optimization import schedules

# Variables that the release does not decay. Decay limits how strongly a layer can react
# to its inputs, which is the job of its matrix. Pulling LayerNorm's scale towards 0
# would instead shrink the output that the layer exists to normalize, and a bias only
# shifts its output. Both are vectors, so there is little to regularize.
EXCLUDED_FROM_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")
# Larger numbers below 1 are rounded to 1.
_LARGEST_IN_BFLOAT16 = 1 - 2**-9
# Size of a variable from which compiling its update saves time.
MIN_COMPILED_ELEMENTS = 1 << 18
# Largest global norm of a gradient, as in the release.
CLIP_NORM = 1.0


class _StepScalars(NamedTuple):
    """What the updates of a step share: float32 scalars."""

    rate: Any
    scale: Any
    decay: Any
    no_decay: Any
    # Of TensorFlow's Adam kernel.
    decay_factor: Any
    gradient_factor: Any
    kernel: dict[str, Any] | None  # None: the backend has no such kernel.


@keras.saving.register_keras_serializable("bert_tf")
class AdamWeightDecay(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay; by default without bias correction.

        m      = beta_1 * m + (1 - beta_1) * gradient
        v      = beta_2 * v + (1 - beta_2) * gradient ** 2
        weight = weight - rate * (m / (sqrt(v) + epsilon) + decay * weight)

    The decay is decoupled from the gradient (Loshchilov and Hutter, arXiv:1711.05101).
    An L2 term in the loss would pass through m and be divided by sqrt(v), so that
    weights with large gradients would hardly decay. Here all of them shrink by the same
    share per step. The rate 0.01 and both betas are those of the paper
    (arXiv:1810.04805, appendix A.2), which calls the decay "L2".

    The moments start at 0, and the original Adam corrects that bias. The release leaves
    the correction out, so the first steps are up to 6.6 times as long as Adam's. The
    warm-up makes up for this; without one, fine-tuning on little data becomes unstable
    (arXiv:2006.05987).

    With `bias_correction`, the rate of step t in the first term is multiplied by
    sqrt(1 - beta_2 ** t) / (1 - beta_1 ** t) (section 2 of arXiv:1412.6980).

    Args:
        learning_rate: float or schedule.
        weight_decay_rate: the decay in the formula.
        beta_1: decay rate of the first moment.
        beta_2: decay rate of the second moment.
        epsilon: added to sqrt(v).
        bias_correction: whether to correct the bias of the moments.
        exclude_from_weight_decay: regular expressions; a variable whose path matches
            one of them does not decay.
        name: of the optimizer.
        **kwargs: those of `keras.optimizers.Optimizer`, without `weight_decay`.

    Raises:
        ValueError: `weight_decay` is given, or `exclude_from_weight_decay` is one
            string.

    Source: AdamWeightDecayOptimizer of optimization.py, 2018.
    """

    # Names of a weight's two slots in a checkpoint.
    slot_names = ("adam_m", "adam_v")
    # `training.steps.LossScale`, which training sets in float16.
    loss_scale: Any = None
    # Whether XLA compiles the updates of large variables, which a step on a CPU sets.
    compiles_updates = False

    def __init__(
        self,
        learning_rate: Any = 5e-5,
        *,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = False,
        exclude_from_weight_decay: Iterable[str] = EXCLUDED_FROM_WEIGHT_DECAY,
        name: str = "adam_weight_decay",
        **kwargs: Any,
    ):
        if kwargs.get("weight_decay") is not None:
            raise ValueError(
                f"weight_decay={kwargs['weight_decay']} is Keras's own decay, which "
                "would be added to weight_decay_rate and also applies to LayerNorm and "
                "biases; pass weight_decay_rate instead."
            )
        if isinstance(exclude_from_weight_decay, str):
            raise ValueError(
                "exclude_from_weight_decay: expected a list of regular expressions, "
                f"got the string {exclude_from_weight_decay!r}."
            )
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.excluded_patterns = tuple(exclude_from_weight_decay)

    def build(self, variables: Sequence[Any]) -> None:
        """Creates both slots of every variable.

        Raises:
            ValueError: a variable is bfloat16, in which `beta_2` would be 1.
        """
        if self.built:
            return
        for variable in variables:
            if variable.dtype == "bfloat16" and self.beta_2 > _LARGEST_IN_BFLOAT16:
                raise ValueError(
                    f"{_path(variable)} is bfloat16, which rounds "
                    f"beta_2={self.beta_2} to 1, so the second moment would never "
                    'shrink; create the model with dtype="mixed_bfloat16", which '
                    "keeps weights in float32."
                )
        super().build(variables)
        self._m, self._v = self.add_optimizer_variables(
            variables, list(self.slot_names)
        )
        self._decays = [
            # The second condition is the method `exclude_from_weight_decay` of Keras.
            self._is_decayed(_path(variable)) and self._use_weight_decay(variable)
            for variable in variables
        ]

    def slots(self) -> dict[str, list[Any]]:
        """Returns {slot name: variables}, in the order of `build`."""
        return dict(zip(self.slot_names, (list(self._m), list(self._v)), strict=True))

    def update_step(
        self,
        gradient: Any,
        variable: Any,
        learning_rate: Any,
        gradient_scale: Any = 1.0,
    ) -> None:
        """Updates `variable` and its slots with a gradient of its shape.

        Args:
            gradient: of the variable's shape.
            variable: one of those of `build`.
            learning_rate: float32 scalar.
            gradient_scale: float32 scalar that multiplies the gradient.
        """
        scalars = self.step_scalars(learning_rate, gradient_scale)
        self.update_variable(gradient, variable, scalars)

    def step_scalars(self, learning_rate: Any, gradient_scale: Any = 1.0) -> Any:
        """Returns the scalars that the updates of all variables in a step share.

        A step that computed them for each variable would take longer to trace.

        Args:
            learning_rate, gradient_scale: those of `update_step`.

        Returns:
            What `update_variable` takes: a named tuple of float32 scalars.
        """
        rate, scale = _scalar(learning_rate), _scalar(gradient_scale)
        decay, zero = _scalar(self.weight_decay_rate), _scalar(0.0)
        decay_factor = 1.0 - rate * decay
        if self.bias_correction:
            step = _scalar(self.iterations + 1)
            debias = ops.sqrt(1.0 - self.beta_2**step) / (1.0 - self.beta_1**step)
            rate, decay = rate * debias, decay / debias  # The product stays.
        gradient_factor, kernel = scale, None
        if keras.backend.backend() == "tensorflow":
            # The kernel computes 1 - beta_2 in float32, which for 0.999 is too small by
            # a factor of 1 - 1.3e-5. A gradient that is larger by the square root of
            # that factor, and a rate that is smaller by as much, make up for it.
            rounded = 1 - float(np.float32(self.beta_2))
            correction = math.sqrt((1 - self.beta_2) / rounded)
            gradient_factor = scale * correction
            kernel = {
                # Powers of 0 switch the kernel's bias correction off.
                "beta1_power": zero,
                "beta2_power": zero,
                "lr": rate / correction,
                "beta1": _scalar(self.beta_1),
                "beta2": _scalar(self.beta_2),
                "epsilon": _scalar(self.epsilon),
            }
        return _StepScalars(
            rate=rate,
            scale=scale,
            decay=decay,
            no_decay=zero,
            decay_factor=decay_factor,
            gradient_factor=gradient_factor,
            kernel=kernel,
        )

    def update_variable(self, gradient: Any, variable: Any, scalars: Any) -> None:
        """Does what `update_step` does, with the scalars of `step_scalars`."""
        index = self._get_variable_index(variable)
        m, v = self._m[index], self._v[index]
        is_decayed = self._decays[index]
        self._update(variable, m, v, gradient, scalars, is_decayed=is_decayed)

    def _update(self, variable, m, v, gradient, scalars, *, is_decayed):
        settings = {
            "scale": scalars.scale,
            "rate": scalars.rate,
            "decay": scalars.decay if is_decayed else scalars.no_decay,
        }
        if scalars.kernel is None:
            self._update_plainly(variable, m, v, gradient, **settings)
            return
        if isinstance(variable, keras.Variable):
            variable = variable.value
        m, v = m.value, v.value
        is_large = math.prod(variable.shape) >= MIN_COMPILED_ELEMENTS
        if self.compiles_updates and is_large:
            self._compiled_update(variable, m, v, gradient, **settings)
        elif variable.dtype == "float32":
            is_decayed = is_decayed and self.weight_decay_rate != 0
            self._update_by_kernel(
                variable, m, v, gradient, scalars, is_decayed=is_decayed
            )
        else:  # The kernel's scalars are float32.
            self._update_plainly(variable, m, v, gradient, **settings)

    @functools.cached_property
    def _compiled_update(self):
        import tensorflow as tf

        return tf.function(self._update_plainly, jit_compile=True, autograph=False)

    def _update_plainly(self, variable, m, v, gradient, *, scale, rate, decay):
        scale, rate, decay = (
            ops.cast(scalar, variable.dtype) for scalar in (scale, rate, decay)
        )
        gradient = ops.cast(gradient, variable.dtype) * scale
        next_m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
        next_v = self.beta_2 * v + (1.0 - self.beta_2) * ops.square(gradient)
        update = next_m / (ops.sqrt(next_v) + self.epsilon) + decay * variable
        self.assign(m, next_m)
        self.assign(v, next_v)
        self.assign_sub(variable, rate * update)

    def _update_by_kernel(self, variable, m, v, gradient, scalars, *, is_decayed):
        """Does the same with TensorFlow's Adam kernel, in three passes instead of ten.

        Multiplying the weight by 1 - rate * decay first equals adding decay * weight to
        the update.
        """
        import tensorflow as tf

        if is_decayed:
            variable.assign(variable * scalars.decay_factor)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            grad=ops.cast(gradient, "float32") * scalars.gradient_factor,
            **scalars.kernel,
        )

    def _is_decayed(self, path):
        return not any(re.search(pattern, path) for pattern in self.excluded_patterns)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        config = super().get_config()
        # Keras's own decay has no exceptions by name, so this class does not use it.
        config.pop("weight_decay", None)
        config.update(
            weight_decay_rate=self.weight_decay_rate,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            bias_correction=self.bias_correction,
            exclude_from_weight_decay=self.excluded_patterns,
        )
        return config


class _LambScalars(NamedTuple):
    """What the updates of a step of LAMB share: float32 scalars."""

    rate: Any
    scale: Any
    correction_1: Any
    correction_2: Any


@keras.saving.register_keras_serializable("bert_tf")
class Lamb(AdamWeightDecay):
    """Adam with bias correction, whose update gets the norm of the weight it changes.

        m      = beta_1 * m + (1 - beta_1) * gradient
        v      = beta_2 * v + (1 - beta_2) * gradient ** 2
        update = (m / (1 - beta_1 ** t)) / (sqrt(v / (1 - beta_2 ** t)) + epsilon)
        update = update + decay * weight
        weight = weight - rate * |weight| / |update| * update

    The norms are Euclidean, over a whole variable. If one of them is 0, their ratio is
    taken as 1. For variables that do not decay (biases and LayerNorm) it is 1 as well.
    t counts the steps from 1.

    A very large batch allows only few steps, so they have to be long. One rate for all
    layers then diverges where the gradient is large compared with the weights. Making
    each update proportional to its weight bounds the relative change of every layer.

    Args: as for `AdamWeightDecay`; the bias is always corrected.

    Source: algorithm 2 of "Large Batch Optimization for Deep Learning: Training BERT
    in 76 minutes" (You et al., arXiv:1904.00962), with phi(z) = z.
    """

    slot_names = ("lamb_m", "lamb_v")

    def __init__(self, learning_rate: Any = 1e-3, *, name: str = "lamb", **kwargs: Any):
        if not kwargs.setdefault("bias_correction", True):
            raise ValueError("LAMB always corrects the bias; omit bias_correction.")
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)

    def step_scalars(self, learning_rate: Any, gradient_scale: Any = 1.0) -> Any:
        """Returns what updates share; see `AdamWeightDecay.step_scalars`."""
        step = ops.cast(self.iterations + 1, "float32")
        return _LambScalars(
            rate=ops.cast(learning_rate, "float32"),
            scale=ops.cast(gradient_scale, "float32"),
            correction_1=1.0 - ops.power(self.beta_1, step),
            correction_2=1.0 - ops.power(self.beta_2, step),
        )

    def _update(self, variable, m, v, gradient, scalars, *, is_decayed):
        rate, scale, correction_1, correction_2 = (
            ops.cast(scalar, variable.dtype) for scalar in scalars
        )
        # A product of tensors also makes the gradient of a lookup dense.
        gradient = ops.cast(gradient, variable.dtype) * scale
        next_m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
        next_v = self.beta_2 * v + (1.0 - self.beta_2) * ops.square(gradient)
        self.assign(m, next_m)
        self.assign(v, next_v)
        update = (next_m / correction_1) / (
            ops.sqrt(next_v / correction_2) + self.epsilon
        )
        if is_decayed:
            update = update + self.weight_decay_rate * variable
            rate = rate * _trust_ratio(ops.convert_to_tensor(variable), update)
        self.assign_sub(variable, rate * update)


OPTIMIZERS = {"adamw": AdamWeightDecay, "lamb": Lamb}


def create_optimizer(
    learning_rate: float,
    num_train_steps: int,
    num_warmup_steps: int,
    *,
    clip_norm: float | None = None,
    schedule: keras.optimizers.schedules.LearningRateSchedule | None = None,
    name: str = "adamw",
    bias_correction: bool = False,
) -> AdamWeightDecay:
    """Returns an optimizer with warm-up and linear decay of the learning rate.

    Args:
        learning_rate: the rate at the end of the warm-up.
        num_train_steps: the step at which the rate reaches 0.
        num_warmup_steps: steps over which the rate rises.
        clip_norm: global norm to clip gradients to; None: do not clip. For `model.fit`
            on one device pass `CLIP_NORM`. `training` clips by itself, after it has
            summed the gradients over replicas.
        schedule: used instead of warm-up and linear decay by step. The first three
            arguments then have no effect.
        name: a key of `OPTIMIZERS`.
        bias_correction: see `AdamWeightDecay`; LAMB always corrects the bias.

    Source: create_optimizer of optimization.py, 2018.
    """
    schedule = schedule or schedules.WarmupLinearDecay(
        learning_rate, num_train_steps, num_warmup_steps
    )
    return OPTIMIZERS[name](
        schedule,
        global_clipnorm=clip_norm,
        bias_correction=bias_correction or name == "lamb",
    )


def _path(variable):
    """Returns the path of a Keras variable, or the name of a `tf.Variable`."""
    return getattr(variable, "path", None) or variable.name.partition(":")[0]


def _scalar(number):
    return ops.cast(number, "float32")


def _trust_ratio(weight, update):
    weight_norm = ops.sqrt(ops.sum(ops.square(weight)))
    update_norm = ops.sqrt(ops.sum(ops.square(update)))
    has_both = ops.logical_and(weight_norm > 0.0, update_norm > 0.0)
    safe_norm = ops.where(has_both, update_norm, 1.0)
    return ops.where(has_both, weight_norm / safe_norm, 1.0)
