"""The optimizer of the release, put together."""

from bert_tf.optimization import adam_weight_decay
from bert_tf.optimization import lamb
from bert_tf.optimization import schedules

OPTIMIZERS = {"adamw": adam_weight_decay.AdamWeightDecay, "lamb": lamb.Lamb}
# Gradients are scaled down to this global norm, as in the release.
CLIP_NORM = 1.0


def create_optimizer(
    learning_rate,
    num_train_steps,
    num_warmup_steps,
    *,
    clip_norm=None,
    schedule=None,
    name="adamw",
):
    """Returns the release's AdamWeightDecay with warm-up and linear decay, or LAMB.

    Args:
        learning_rate: float, the rate that the warm-up rises to.
        num_train_steps: int.
        num_warmup_steps: int.
        clip_norm: float or None. For `model.fit` on one device give `CLIP_NORM`;
            `training` clips the gradient that is added up over replicas itself.
        schedule: Keras's LearningRateSchedule in place of warm-up and linear decay
            by the step; the first three arguments then count for nothing.
        name: a key of `OPTIMIZERS`.

    Source: create_optimizer of optimization.py, 2018.
    """
    schedule = schedule or schedules.WarmupLinearDecay(
        learning_rate, num_train_steps, num_warmup_steps
    )
    return OPTIMIZERS[name](schedule, global_clipnorm=clip_norm)
