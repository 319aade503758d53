"""The optimizer that a run's options ask for."""

from bert_tf.optimization import create
from bert_tf.optimization import schedules
from bert_tf.training import freezing


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
    """
    optimizer = create.create_optimizer(
        options.learning_rate, num_train_steps, num_warmup_steps, schedule=schedule
    )
    freezing.freeze(model, options.frozen_layers)
    optimizer.build(model.trainable_variables)
    return optimizer


def schedule_of_time(options):
    """Returns the rates of a run with a time budget, or None without one."""
    if not options.max_train_minutes:
        return None
    return schedules.WarmupLinearDecayOfTime(
        options.learning_rate, options.warmup_proportion
    )
