"""Learning rates as functions of the step."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("bert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly over the warm-up, then falls linearly to 0.

    Decay is counted from the first step, not from the end of the warm-up, so the rate
    drops a little when the warm-up ends. Steps count from 1: the first one of a warm-up
    of W steps has 1 / W of the rate, the last one of the run has rate 0. (The 2018 code
    reads the step after its increment; the recorded runs show it.)

    Args:
        learning_rate: float, the rate that warm-up and decay are fractions of.
        num_train_steps: int, the step at which the rate reaches 0.
        num_warmup_steps: int, steps of warm-up; 0 for none.

    Source: create_optimizer of optimization.py, 2018.
    """

    def __init__(self, learning_rate, num_train_steps, num_warmup_steps):
        super().__init__()
        self.learning_rate = learning_rate
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps

    def __call__(self, step):
        """Returns the rate, float32 scalar, of the step after `step` finished ones."""
        step = ops.cast(step, "float32") + 1.0
        share_done = ops.minimum(step / max(self.num_train_steps, 1), 1.0)
        decayed = self.learning_rate * (1.0 - share_done)
        if self.num_warmup_steps == 0:
            return decayed
        warming = self.learning_rate * step / self.num_warmup_steps
        return ops.where(step < self.num_warmup_steps, warming, decayed)

    def get_config(self):
        """Returns the arguments that `from_config` takes."""
        return {
            "learning_rate": self.learning_rate,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
        }


@keras.saving.register_keras_serializable("bert_tf")
class WarmupLinearDecayOfTime(keras.optimizers.schedules.LearningRateSchedule):
    """Rises and falls as `WarmupLinearDecay` does, by the time and not by the step.

    Args:
        learning_rate: float, the rate that warm-up and decay are fractions of.
        warmup_proportion: float, the share of the time that the warm-up takes.

    Attributes:
        share_done: Keras variable, float32 scalar: the share of the time that is
            over. Whoever trains sets it.
    """

    def __init__(self, learning_rate, warmup_proportion):
        super().__init__()
        self.learning_rate = learning_rate
        self.warmup_proportion = warmup_proportion
        self.share_done = keras.Variable(
            0.0, dtype="float32", trainable=False, name="share_done"
        )

    def __call__(self, unused_step):
        """Returns the rate of now, float32 scalar."""
        share_done = ops.convert_to_tensor(self.share_done)
        decayed = self.learning_rate * (1.0 - share_done)
        if self.warmup_proportion == 0:
            return decayed
        warming = self.learning_rate * share_done / self.warmup_proportion
        return ops.where(share_done < self.warmup_proportion, warming, decayed)

    def get_config(self):
        """Returns the arguments that `from_config` takes."""
        return {
            "learning_rate": self.learning_rate,
            "warmup_proportion": self.warmup_proportion,
        }
