"""Several runs from one command, each from the weights of the one before.

The paper trains most steps on short sequences, which are cheap, and the last ones on
long sequences, which teach the position embeddings (appendix A.2, Devlin et al.).
"""

import dataclasses
import os
import shlex

from bert_tf import options as options_module

FOLDER = "phase_{number}"
# What is the same in all phases, or not the user's to say of one.
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


def options_of(options) -> list:
    """Returns the options of every phase of a run.

    Args:
        options: `run_options.RunPretrainingOptions` with `phase`.

    Raises:
        OptionError: a phase names an option that there is not, or one that all phases
            share, or has a value that cannot be; the message has its number.
    """
    phases = []
    for number, text in enumerate(options.phase, start=1):
        folder = os.path.join(options.output_dir, FOLDER.format(number=number))
        changes = {"phase": (), "output_dir": folder}
        if phases and not options.dry_run:
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
                f"--phase, the one with number {number}: {error}"
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
                f"{word!r} is nothing that a phase can have; expected NAME=VALUE with "
                "the name of a flag that may differ between phases, such as input_file "
                "or max_seq_length."
            )
        values[name] = options_module.parse(declared[name], value)
    return values


def _words(text):
    try:
        return shlex.split(text)
    except ValueError as error:  # A quotation mark without its fellow.
        raise options_module.OptionError(f"{text!r}: {error}.") from None
