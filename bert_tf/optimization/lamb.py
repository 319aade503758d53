"""LAMB: Adam whose step in each weight matrix is proportional to the matrix's norm."""

from typing import Any
from typing import NamedTuple

import keras
from keras import ops

from bert_tf.optimization import adam_weight_decay


class _StepScalars(NamedTuple):
    """What the updates of a step share: float32 scalars."""

    rate: Any
    scale: Any
    correction_1: Any
    correction_2: Any


@keras.saving.register_keras_serializable("bert_tf")
class Lamb(adam_weight_decay.AdamWeightDecay):
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
        return _StepScalars(
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


def _trust_ratio(weight, update):
    weight_norm = ops.sqrt(ops.sum(ops.square(weight)))
    update_norm = ops.sqrt(ops.sum(ops.square(update)))
    has_both = ops.logical_and(weight_norm > 0.0, update_norm > 0.0)
    safe_norm = ops.where(has_both, update_norm, 1.0)
    return ops.where(has_both, weight_norm / safe_norm, 1.0)
