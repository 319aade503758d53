"""Creates the release's optimizer, or LAMB, with the release's learning rates."""

import keras

from bert_tf.optimization import adam_weight_decay
from bert_tf.optimization import lamb
from bert_tf.optimization import schedules

OPTIMIZERS = {"adamw": adam_weight_decay.AdamWeightDecay, "lamb": lamb.Lamb}
# Largest global norm of a gradient, as in the release.
CLIP_NORM = 1.0


def create_optimizer(
    learning_rate: float,
    num_train_steps: int,
    num_warmup_steps: int,
    *,
    clip_norm: float | None = None,
    schedule: keras.optimizers.schedules.LearningRateSchedule | None = None,
    name: str = "adamw",
    bias_correction: bool = False,
) -> adam_weight_decay.AdamWeightDecay:
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
