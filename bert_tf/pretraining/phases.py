"""Several runs from one command, each starting from the weights of the previous one.

The cost of attention grows with the square of the length. So the paper trains 90 % of
the steps on sequences of 128 pieces and only the last 10 % on sequences of 512, which
teach the remaining position embeddings (appendix A.2 of arXiv:1810.04805).

Each phase is a separate run: it takes over the weights, but not Adam's moments, the
step or the learning rate. `--phase` therefore only approximates the paper's single
schedule over both lengths; `recipes/base_paper.flags` says how closely.
"""

import dataclasses
import os
import shlex
from typing import Any
from typing import TypeVar

from bert_tf import options as options_module

FOLDER = "phase_{number}"
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
)


# `RunPretrainingOptions`, whose module imports this one.
RunOptions = TypeVar("RunOptions", bound=options_module.Options)


def options_of(options: RunOptions) -> list[RunOptions]:
    """Returns the options of each phase of a run.

    Args:
        options: `RunPretrainingOptions`; their `phase` says what differs in each.

    Raises:
        OptionError: a phase sets an unknown option, an option that all phases share,
            or an invalid value. The message has the number of the phase.
    """
    phases: list[Any] = []
    given: Any = options
    for number, text in enumerate(given.phase, start=1):
        folder = os.path.join(given.output_dir, FOLDER.format(number=number))
        changes: dict[str, Any] = {"phase": (), "output_dir": folder}
        if phases and not given.dry_run:
            changes |= {
                "init_checkpoint": phases[-1].output_dir,
                "bert_config_file": None,
                "model_size": None,
                "config_overrides": (),
            }
        try:
            changes |= _values(type(options), text)
            phases.append(dataclasses.replace(options, **changes))
        except options_module.OptionError as error:
            raise options_module.OptionError(
                f"--phase number {number}: {error}"
            ) from None
    return phases


def _values(options_class, text):
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
        values[name] = options_module.parse(declared[name], value)
    return values


def _words(text):
    try:
        return shlex.split(text)
    except ValueError as error:  # An unbalanced quotation mark.
        raise options_module.OptionError(f"{text!r}: {error}.") from None
