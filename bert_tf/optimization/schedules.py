"""Learning rates as functions of the step or of the time.

Why a warm-up: the first gradients come from random weights (in fine-tuning: from a
random head) and point in directions that soon no longer matter, and Adam's second
moment is still an average of very few of them. A full step at this point can damage the
encoder permanently. The paper warms up over the first 10,000 of 1,000,000 steps
(arXiv:1810.04805, appendix A.2), the release's fine-tuning over the first tenth.

Why a linear decay to 0: towards the end, small steps average out the noise of single
batches, and the last checkpoint tends to be the best one.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

# A longer run outlives the large first steps of an uncorrected Adam, and BERT was
# pretrained with at most this rate.
_SHORT_RUN = 1000
_LARGEST_RELEASED_RATE = 1e-4
_HIGH_RATE = 1e-2


@keras.saving.register_keras_serializable("bert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly during the warm-up, then falls linearly to 0.

    The decay is counted from the first step of the run, not from the end of the
    warm-up: with a warm-up of a tenth of the run, the rate drops by a tenth when the
    warm-up ends. The release computes it this way, and recorded runs depend on it.

    Steps count from 1: the first step of a warm-up of W steps has rate / W, and the
    last step of the run has rate 0. The release's source suggests counting from 0, but
    it reads the step after the increment: the losses of recorded runs agree to 3e-7
    this way, and to 1e-2 otherwise.

    Args:
        learning_rate: the rate that warm-up and decay are fractions of.
        num_train_steps: the step at which the rate reaches 0.
        num_warmup_steps: steps of warm-up; 0: none.

    Source: create_optimizer of optimization.py, 2018.
    """

    def __init__(
        self, learning_rate: float, num_train_steps: int, num_warmup_steps: int
    ):
        super().__init__()
        self.learning_rate = learning_rate
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps

    def __call__(self, step: Any) -> Any:
        """Returns the rate, float32 scalar, of the step after `step` finished ones."""
        step = ops.cast(step, "float32") + 1.0
        share_done = ops.minimum(step / max(self.num_train_steps, 1), 1.0)
        decayed = self.learning_rate * (1.0 - share_done)
        if self.num_warmup_steps == 0:
            return decayed
        warming = self.learning_rate * step / self.num_warmup_steps
        return ops.where(step < self.num_warmup_steps, warming, decayed)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            "learning_rate": self.learning_rate,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
        }


@keras.saving.register_keras_serializable("bert_tf")
class WarmupLinearDecayOfTime(keras.optimizers.schedules.LearningRateSchedule):
    """Rises and falls like `WarmupLinearDecay`, by elapsed time instead of by step.

    The host sets `share_done` before each call of several steps, about once a second.

    Args:
        learning_rate: the rate that warm-up and decay are fractions of.
        warmup_proportion: share of the time that the warm-up takes.

    Attributes:
        share_done: Keras variable, float32 scalar: the share of the time that is over.
    """

    def __init__(self, learning_rate: float, warmup_proportion: float):
        super().__init__()
        self.learning_rate = learning_rate
        self.warmup_proportion = warmup_proportion
        self.share_done = keras.Variable(
            0.0, dtype="float32", trainable=False, name="share_done"
        )

    def __call__(self, unused_step: Any) -> Any:
        """Returns the current rate, float32 scalar."""
        share_done = ops.convert_to_tensor(self.share_done)
        decayed = self.learning_rate * (1.0 - share_done)
        if self.warmup_proportion == 0:
            return decayed
        warming = self.learning_rate * share_done / self.warmup_proportion
        return ops.where(share_done < self.warmup_proportion, warming, decayed)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            "learning_rate": self.learning_rate,
            "warmup_proportion": self.warmup_proportion,
        }


def advice_on_rate(
    learning_rate: float,
    num_train_steps: int,
    num_warmup_steps: int,
    *,
    is_corrected: bool,
) -> str | None:
    """Returns a warning about an unusual learning rate or warm-up, or None.

    Args:
        learning_rate, num_warmup_steps: see `adam_weight_decay.create_optimizer`.
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
