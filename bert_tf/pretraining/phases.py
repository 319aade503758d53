"""Several runs from one command, each starting from the weights of the previous one.

The cost of attention grows with the square of the length. So the paper trains 90 % of
the steps on sequences of 128 pieces and only the last 10 % on sequences of 512, which
teach the remaining position embeddings (appendix A.2 of arXiv:1810.04805).

Each phase is a separate run with its own folder. With `--phase_schedule=separate`, it
takes over only the weights: Adam's moments, the step and the learning rate start fresh.
With `--phase_schedule=shared`, it takes over all of them, and one warm-up and one
linear decay span all phases, as in the paper. Batches and dropout masks are functions
of the step, so two phases with the same data and length compute the same as one run.
"""

import dataclasses
import itertools
import os
import shlex
from typing import Any
from typing import TypeVar

from bert_tf import options as options_module

FOLDER = "phase_{number}"
# Values of --phase_schedule.
SEPARATE = "separate"
SHARED = "shared"
# Options that cannot differ between phases.
_SHARED = (
    "phase",
    "output_dir",
    "init_checkpoint",
    "bert_config_file",
    "model_size",
    "config_overrides",
    "objective",
    "vocab_file",
    "do_train",
    "do_eval",
    "dry_run",
    "phase_schedule",
    "schedule_steps",
    "continue_schedule",
)
# Options that cannot differ between phases with one schedule. The optimizer's state
# also depends on dtype: mixed_float16 adds a loss scale.
_OF_SCHEDULE = (
    "learning_rate",
    "num_warmup_steps",
    "optimizer",
    "dtype",
    "max_train_minutes",
    "warmup_proportion",
)
# Options that would make the length of the shared schedule unknown.
_UNPREDICTABLE = ("max_train_minutes", "early_stopping_evals")


# `RunPretrainingOptions`, whose module imports this one.
RunOptions = TypeVar("RunOptions", bound=options_module.Options)


def phase_options(options: RunOptions) -> list[RunOptions]:
    """Returns the options of each phase of a run.

    Args:
        options: `RunPretrainingOptions`; their `phase` says what differs in each.

    Raises:
        OptionError: a phase sets an unknown option, an option that all phases share,
            or an invalid value. The message has the number of the phase.
    """
    phases: list[Any] = []
    given: Any = options
    is_shared = given.phase_schedule == SHARED
    for number, text in enumerate(given.phase, start=1):
        folder = os.path.join(given.output_dir, FOLDER.format(number=number))
        changes: dict[str, Any] = {
            "phase": (),
            "phase_schedule": SEPARATE,
            "output_dir": folder,
        }
        if phases and not given.dry_run:
            changes |= {
                "init_checkpoint": phases[-1].output_dir,
                "bert_config_file": None,
                "model_size": None,
                "config_overrides": (),
            }
        try:
            changes |= _values(type(options), text, _OF_SCHEDULE if is_shared else ())
            phases.append(dataclasses.replace(options, **changes))
        except options_module.OptionError as error:
            raise options_module.OptionError(
                f"--phase number {number}: {error}"
            ) from None
    return _with_one_schedule(phases) if is_shared else phases


def first_steps(options: RunOptions, phases: list[RunOptions]) -> list[int]:
    """Returns the finished steps with which each phase of a run begins.

    Args:
        options: `RunPretrainingOptions` of the run.
        phases: its phases, from `phase_options`.
    """
    given: list[Any] = [options, *phases]
    if given[0].phase_schedule == SEPARATE:
        return [0 for _ in phases]
    return [0, *(phase.num_train_steps for phase in given[1:-1])]


def _with_one_schedule(phases: list[Any]) -> list[Any]:
    """Returns phases that continue each other's schedule."""
    for name in _UNPREDICTABLE:
        if any(getattr(phase, name) for phase in phases):
            raise options_module.OptionError(
                f"--{name} cannot be combined with --phase_schedule=shared, which "
                "needs the number of steps of each phase in advance."
            )
    lasts = list(itertools.accumulate(phase.num_train_steps for phase in phases))
    return [
        dataclasses.replace(
            phase,
            num_train_steps=last,
            schedule_steps=lasts[-1],
            # In a dry run, there is no checkpoint to continue.
            continue_schedule=number > 0 and not phase.dry_run,
        )
        for number, (phase, last) in enumerate(zip(phases, lasts, strict=True))
    ]


def _values(options_class, text, of_schedule):
    """Returns {option: value} of "name=value name=value"."""
    declared = {d.name: d for d in options_module.declarations(options_class)}
    values = {}
    for word in _words(text):
        name, equals, value = word.removeprefix("--").partition("=")
        if not equals or name not in declared or name in _SHARED:
            raise options_module.OptionError(
                f"A phase cannot set {word!r}; expected NAME=VALUE with the name of a "
                "flag that may differ between phases, such as input_file or "
                "max_seq_length."
            )
        if name in of_schedule:
            raise options_module.OptionError(
                f"A phase cannot set {word!r} with --phase_schedule=shared; set "
                f"--{name} once for all phases."
            )
        values[name] = options_module.parse(declared[name], value)
    return values


def _words(text):
    try:
        return shlex.split(text)
    except ValueError as error:  # An unbalanced quotation mark.
        raise options_module.OptionError(f"{text!r}: {error}.") from None
