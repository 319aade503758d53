"""Checks of a run that continues the schedule of another one, and its learning rates.

Two runs share a schedule if the second one takes over the optimizer's slots and the
step (`--continue_schedule`), and both have the same peak rate, warm-up and end of the
decay (`--schedule_steps`). The phases of `--phase_schedule=shared` are such runs.
"""

import logging
import math
import os

from bert_tf import files
from bert_tf.checkpoints import source as source_module
from bert_tf.optimization import create
from bert_tf.optimization import schedules
from bert_tf.pretraining import options as pretraining_options
from bert_tf.training import result_files
from bert_tf.training import saving

logger = logging.getLogger(__name__)

# Both rates are computed in float32.
_SAME_RATE = 1e-5


def check(
    options: pretraining_options.RunPretrainingOptions, source: source_module.Source
) -> None:
    """Checks the checkpoint whose schedule a run is about to continue.

    Computes no tensors: a multi-worker strategy must be created before the first one.

    Args:
        options: of the run.
        source: what `options.init_checkpoint` means.

    Raises:
        ValueError: the checkpoint has no slots of this optimizer, its run is not
            finished, or it has no steps left.
    """
    path = source.path
    slots = create.OPTIMIZERS[options.optimizer].slot_names
    if not any(name.endswith(f"/{slots[0]}") for name in source.optimizer):
        raise ValueError(
            f"{path} has no slots of --optimizer={options.optimizer} "
            f"({', '.join(slots)}), which --continue_schedule takes over; pass the "
            "folder of the earlier run, or omit the flag to take only the weights."
        )
    step = saving.read_step(path)
    run = result_files.read_run(os.path.dirname(path))
    flags = run.get("flags", {})
    last_step = flags.get("num_train_steps")
    if files.is_folder(str(options.init_checkpoint)) and last_step is not None:
        is_finished = run.get("finished_step") == step or step >= last_step
        if not is_finished:
            raise ValueError(
                f"{options.init_checkpoint} is not finished: it is at step {step:,} of "
                f"{last_step:,}. Finish that run before you continue its schedule."
            )
    if step >= options.num_train_steps:
        raise ValueError(
            f"{path} is at step {step:,} already, and --num_train_steps="
            f"{options.num_train_steps} includes these steps; pass the step at which "
            "the new run ends."
        )


def warn_about_jump(
    options: pretraining_options.RunPretrainingOptions,
    source: source_module.Source,
    step: int,
) -> None:
    """Logs a warning if the learning rate jumps where a run begins.

    Args:
        options: of the run.
        source: the checkpoint whose schedule it continues.
        step: of the checkpoint.
    """
    flags = result_files.read_run(os.path.dirname(source.path)).get("flags", {})
    if "num_train_steps" not in flags:
        return
    rate = 0.0
    if not flags.get("max_train_minutes"):
        schedule = schedules.WarmupLinearDecay(
            flags["learning_rate"],
            flags.get("schedule_steps") or flags["num_train_steps"],
            flags["num_warmup_steps"],
        )
        rate = float(schedule(step - 1))
    now = learning_rate(options, step)
    if not math.isclose(rate, now, rel_tol=_SAME_RATE, abs_tol=1e-15):
        logger.warning(
            "The learning rate jumps: at step %d the schedule of %s is at %.4g, and "
            "that of this run is at %.4g. For one schedule, both runs need the same "
            "--learning_rate and --num_warmup_steps, and the earlier one needs "
            "--schedule_steps.",
            step,
            options.init_checkpoint,
            rate,
            now,
        )


def check_resumed(options: pretraining_options.RunPretrainingOptions) -> None:
    """Checks that a run is resumed with the `continue_schedule` that it began with.

    Otherwise its steps would be counted from another first step.

    Raises:
        ValueError: it began without the flag and now has it, or the other way round.
    """
    flags = result_files.read_run(options.output_dir).get("flags", {})
    before = flags.get("continue_schedule", False)
    if flags and before != options.continue_schedule:
        raise ValueError(
            f"{options.output_dir} contains a run that began with --continue_schedule="
            f"{before}, but this command has {options.continue_schedule}; use the same "
            "value, or another --output_dir."
        )


def learning_rate(
    options: pretraining_options.RunPretrainingOptions, step: int
) -> float:
    """Returns the learning rate of a step, counted from 1."""
    schedule = schedules.WarmupLinearDecay(
        options.learning_rate,
        options.schedule_steps or options.num_train_steps,
        options.num_warmup_steps,
    )
    return float(schedule(step - 1))


def describe_rates(
    options: pretraining_options.RunPretrainingOptions, first_step: int
) -> str:
    """Returns the learning rates in the first and last step and around the warm-up.

    Args:
        options: of the run.
        first_step: finished steps with which the run begins.
    """
    warmup, last = options.num_warmup_steps, options.num_train_steps
    steps = {min(first_step + 1, last), last}
    if first_step < warmup < last:
        steps.add(warmup)
    return ", ".join(
        f"{learning_rate(options, step):.4g} in step {step:,}" for step in sorted(steps)
    )
