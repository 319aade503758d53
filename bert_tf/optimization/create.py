"""Creates the release's optimizer, or LAMB, with the release's learning rates."""

import keras
import numpy as np

from bert_tf.optimization import adam_weight_decay
from bert_tf.optimization import lamb
from bert_tf.optimization import schedules

OPTIMIZERS = {"adamw": adam_weight_decay.AdamWeightDecay, "lamb": lamb.Lamb}
# Largest global norm of a gradient, as in the release.
CLIP_NORM = 1.0
# A longer run outlives the large first steps of an uncorrected Adam, and BERT was
# pretrained with at most this rate.
_SHORT_RUN = 1000
_LARGEST_RELEASED_RATE = 1e-4
_HIGH_RATE = 1e-2


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


def advice_on_rate(
    learning_rate: float,
    num_train_steps: int,
    num_warmup_steps: int,
    *,
    is_corrected: bool,
) -> str | None:
    """Returns a warning about an unusual learning rate or warm-up, or None.

    Args:
        learning_rate, num_warmup_steps: see `create_optimizer`.
        num_train_steps: likewise; 0: a time limit ends the run.
        is_corrected: whether the optimizer corrects the bias of its averages.
    """
    if learning_rate == 0:
        return "--learning_rate=0: training does not change the weights."
    if learning_rate > _HIGH_RATE:
        return (
            f"--learning_rate={learning_rate:g} is far above the usual 1e-5 to 1e-3; "
            "the model may learn nothing."
        )
    if not num_train_steps:
        return None
    if num_warmup_steps > num_train_steps:
        return (
            f"The warm-up ({num_warmup_steps} steps) is longer than the run "
            f"({num_train_steps} steps), so the learning rate reaches only "
            f"{learning_rate * num_train_steps / num_warmup_steps:.2g} instead of "
            f"{learning_rate:.2g}."
        )
    is_short = num_train_steps < _SHORT_RUN
    if is_corrected or not is_short or learning_rate <= _LARGEST_RELEASED_RATE:
        return None
    rate, step = _largest_uncorrected_rate(
        learning_rate, num_train_steps, num_warmup_steps
    )
    return (
        f"Without --bias_correction, the learning rate of {learning_rate:.2g} acts "
        f"like one of up to {rate:.2g} (in step {step})."
    )


def _largest_uncorrected_rate(learning_rate, num_train_steps, num_warmup_steps):
    """Returns the rate that Adam without bias correction acts as if it had; its step.

    Without the correction, step t is as long as one of corrected Adam with a rate that
    is (1 - beta_1 ** t) / sqrt(1 - beta_2 ** t) times as large.
    """
    steps = np.arange(1, num_train_steps + 1)
    shares = np.where(
        steps < num_warmup_steps,
        steps / max(num_warmup_steps, 1),
        1 - steps / num_train_steps,
    )
    rates = learning_rate * shares * (1 - 0.9**steps) / np.sqrt(1 - 0.999**steps)
    return float(np.max(rates)), int(steps[np.argmax(rates)])
