"""The optimizer that a run's options ask for."""

from bert_tf.optimization import create
from bert_tf.optimization import schedules
from bert_tf.training import freezing
from bert_tf.training import loss_scale


def create_optimizer(
    model, options, *, num_train_steps, num_warmup_steps, schedule=None
):
    """Returns an optimizer that is built for what learns of a model.

    Args:
        model: built `heads.TaskModel`; `options.frozen_layers` of it are frozen here.
        options: `TrainingOptions`.
        num_train_steps: int.
        num_warmup_steps: int.
        schedule: what `schedule_of_time` returned.

    Its attribute `loss_scale` is a `loss_scale.LossScale` in float16, else None.
    """
    optimizer = create.create_optimizer(
        options.learning_rate,
        num_train_steps,
        num_warmup_steps,
        schedule=schedule,
        name=options.optimizer,
    )
    freezing.freeze(model, options.frozen_layers)
    optimizer.build(model.trainable_variables)
    optimizer.loss_scale = None
    if options.dtype == "mixed_float16":
        optimizer.loss_scale = loss_scale.LossScale()
    return optimizer


def schedule_of_time(options):
    """Returns the rates of a run with a time budget, or None without one."""
    if not options.max_train_minutes:
        return None
    return schedules.WarmupLinearDecayOfTime(
        options.learning_rate, options.warmup_proportion
    )
